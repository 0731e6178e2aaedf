package chatting

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entchat "github.com/berthhq/berth/ent/chat"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/gateway/serving"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/chat"
	"github.com/berthhq/berth/manager/chat/live"
)

const (
	// appendEvery is the time between two parts of a text that Redis gets, and saveEvery between two updates of the row.
	appendEvery = 50 * time.Millisecond
	saveEvery   = 3 * time.Second
	// answerTime limits the time of an answer.
	answerTime = time.Hour
	// storeTries is the number of attempts to store the end of an answer.
	storeTries = 5
)

// failure is an error that users see.
type failure string

func (f failure) Error() string { return string(f) }

var (
	errTooLong = failure("the answer is longer than 4 MiB")
	errCut     = failure("the model ended the answer early")
)

// run is one answer that this gateway runs.
type run struct {
	*Service
	answer *ent.ChatAnswer
	cancel context.CancelCauseFunc
	start  time.Time

	mu              sync.Mutex
	text, reasoning strings.Builder
	pending         live.Part // not in Redis yet
	first           time.Time // token
	note, shown     string    // why it waits, and what the row says
	status          chatanswer.Status
	replica         string
	metrics         conversation.Metrics
}

// start runs an answer until it ends.
func (s *Service) start(ctx context.Context, a *ent.ChatAnswer) {
	limited, stop := context.WithTimeout(ctx, answerTime)
	limited, cancel := context.WithCancelCause(limited)
	r := &run{Service: s, answer: a, cancel: cancel, start: time.Now(), status: a.Status, shown: a.Note}
	s.mu.Lock()
	s.running[a.ID] = r
	s.mu.Unlock()
	s.meter.running.Inc()
	if a.Stopping {
		cancel(errStopped)
	}
	s.runs.Go(func() {
		defer stop()
		defer cancel(nil)
		var store sync.WaitGroup
		done := make(chan struct{})
		store.Go(func() { r.store(context.WithoutCancel(limited), done) })
		err := r.ask(limited)
		close(done)
		store.Wait()
		r.finish(limited, err)
		s.mu.Lock()
		delete(s.running, a.ID)
		s.mu.Unlock()
		s.meter.running.Dec()
	})
}

// ask sends the request, and reads the answer.
func (r *run) ask(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	body, err := r.bodyOf(ctx, r.answer)
	if err != nil {
		return err
	}
	in := &reader{part: r.part, comment: r.wait}
	defer func() { r.count(in.usage) }()
	m := r.answer.Asked.Model
	switch {
	case m.EndpointID != nil:
		err = r.askOutside(ctx, body, in)
	case m.DeploymentID != nil:
		err = r.askDeployment(ctx, body, in)
	default:
		err = failure("the model " + m.Name + " was imported with the chat; choose one of this cluster")
	}
	in.end()
	switch {
	case err != nil || ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case in.failed != "":
		return failure(in.failed)
	case !in.done:
		return errCut
	}
	return nil
}

// askDeployment sends the request to a deployment of the cluster.
func (r *run) askDeployment(ctx context.Context, body []byte, in *reader) error {
	w := &answerWriter{header: http.Header{}, in: in}
	record, err := r.Models.Ask(ctx, serving.Ask{
		User: r.answer.OwnerID, Deployment: *r.answer.Asked.Model.DeploymentID, Revision: r.answer.Asked.Model.Revision, Body: body,
	}, w)
	r.mu.Lock()
	r.replica = record.Replica
	waited := milliseconds(record.Waited)
	r.metrics.Waited = &waited
	if record.Counted {
		u := record.Usage
		r.metrics.PromptTokens, r.metrics.CompletionTokens, r.metrics.CachedTokens = &u.Prompt, &u.Completion, &u.Cached
	}
	r.mu.Unlock()
	if err != nil {
		return failure(clean(err.Error()))
	}
	return w.end()
}

// part adds a part of the answer.
func (r *run) part(p live.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text.Len()+len(p.Text) > live.MaxText || r.reasoning.Len()+len(p.Reasoning) > live.MaxText {
		r.cancel(errTooLong)
		return
	}
	if r.first.IsZero() {
		r.first = time.Now()
	}
	r.text.WriteString(p.Text)
	r.reasoning.WriteString(p.Reasoning)
	r.pending.Text += p.Text
	r.pending.Reasoning += p.Reasoning
}

// wait notes why there is no answer yet.
func (r *run) wait(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first.IsZero() {
		r.note = clean(why)
	}
}

// count takes the tokens that the engine counted.
func (r *run) count(u *usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u == nil || r.metrics.CompletionTokens != nil {
		return
	}
	r.metrics.PromptTokens, r.metrics.CompletionTokens = &u.Prompt, &u.Completion
	if u.Details != nil {
		r.metrics.CachedTokens = &u.Details.Cached
	}
}

// store passes the text on to Redis and to the row until done is closed.
func (r *run) store(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(appendEvery)
	defer tick.Stop()
	saved := time.Now()
	for {
		select {
		case <-done:
			r.append(ctx)
			return
		case <-tick.C:
		}
		r.append(ctx)
		if r.changed() || time.Since(saved) >= saveEvery {
			saved = time.Now()
			r.save(ctx)
		}
	}
}

func (r *run) append(ctx context.Context) {
	r.mu.Lock()
	p := r.pending
	r.pending = live.Part{}
	r.mu.Unlock()
	if p.Empty() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := r.Live.Append(ctx, r.answer.ID, p); err != nil {
		r.warn(ctx, "store a part of an answer", err)
		r.mu.Lock()
		r.pending = live.Part{Text: p.Text + r.pending.Text, Reasoning: p.Reasoning + r.pending.Reasoning}
		r.mu.Unlock()
	}
}

// changed reports whether the row has another status or note than the answer.
func (r *run) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.first.IsZero() {
		return r.status != chatanswer.StatusRunning
	}
	return r.note != "" && r.note != r.shown
}

// save stores the state so far in the row.
func (r *run) save(ctx context.Context) {
	r.mu.Lock()
	up := r.Client.ChatAnswer.Update().Where(chatanswer.ID(r.answer.ID), chatanswer.EndedAtIsNil(), chatanswer.Gateway(r.Gateway)).
		SetText(r.text.String()).SetReasoning(r.reasoning.String())
	status, note := r.status, r.shown
	switch {
	case !r.first.IsZero():
		status, note = chatanswer.StatusRunning, ""
	case r.note != "":
		note = r.note
	}
	news := status != r.status || note != r.shown
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := up.SetStatus(status).SetNote(note).Exec(ctx); err != nil {
		r.warn(ctx, "store an answer", err)
		return
	}
	r.mu.Lock()
	r.status, r.shown = status, note
	r.mu.Unlock()
	if news {
		r.Bus.Publish(ctx, event.Event{Topic: event.Chat, ID: r.answer.ChatID, By: chat.ByAnswer})
	}
}

// finish stores the end of the answer.
func (r *run) finish(ctx context.Context, err error) {
	status, note := outcome(context.Cause(ctx), err)
	if status == chatanswer.StatusFailed && note == "" {
		r.warn(context.WithoutCancel(ctx), "run an answer", err)
		note = "the gateway cannot send the request at the moment"
	}
	ctx = context.WithoutCancel(ctx)
	r.measure()
	for try := range storeTries {
		if err = r.end(ctx, status, note); err == nil {
			break
		}
		_ = clock.Pause(ctx, time.Duration(try+1)*100*time.Millisecond)
	}
	r.warn(ctx, "store the end of an answer", err) // the next look interrupts it
	r.meter.answers.WithLabelValues(string(status)).Inc()
	by := chat.ByAnswer
	if r.answer.ReplayID != nil {
		by = chat.ByAsking // the next one of the replay can start
	}
	r.Bus.Publish(ctx, event.Event{Topic: event.Chat, ID: r.answer.ChatID, By: by})
}

// outcome returns how an answer ended, and why. The note is empty for an error that users do not see.
func outcome(cause, err error) (chatanswer.Status, string) {
	var f failure
	switch {
	case errors.Is(cause, errStopped):
		return chatanswer.StatusStopped, ""
	case errors.As(cause, &f):
		return chatanswer.StatusFailed, f.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		return chatanswer.StatusFailed, "the answer took longer than an hour"
	case cause != nil:
		return chatanswer.StatusInterrupted, errLeaving.Error()
	case errors.As(err, &f):
		return chatanswer.StatusFailed, f.Error()
	case err != nil:
		return chatanswer.StatusFailed, ""
	}
	return chatanswer.StatusDone, ""
}

// measure completes the metrics.
func (r *run) measure() {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := time.Since(r.start)
	duration := milliseconds(took)
	r.metrics.Duration = &duration
	if r.first.IsZero() {
		return
	}
	first := r.first.Sub(r.start)
	ms := milliseconds(first)
	r.metrics.FirstToken = &ms
	r.meter.first.Observe(first.Seconds())
	if n := r.metrics.CompletionTokens; n != nil && *n > 1 && took > first {
		rate := float64(*n-1) / (took - first).Seconds()
		r.metrics.TokensPerSecond = &rate
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// end stores the text and the end in the row, once.
func (r *run) end(ctx context.Context, status chatanswer.Status, note string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	up := r.Client.ChatAnswer.Update().Where(chatanswer.ID(r.answer.ID), chatanswer.EndedAtIsNil(), chatanswer.Gateway(r.Gateway)).
		SetStatus(status).SetNote(note).SetText(r.text.String()).SetReasoning(r.reasoning.String()).SetMeasured(&r.metrics).SetEndedAt(clock.Now())
	if id, err := uuid.Parse(r.replica); err == nil {
		row, err := r.Client.DeploymentReplica.Query().Where(deploymentreplica.ID(id)).Only(ctx)
		switch {
		case err == nil:
			up.SetAnsweredBy(row.Revision).SetNillableSessionID(row.SessionID)
		case !ent.IsNotFound(err):
			return err
		}
	}
	if err := up.Exec(ctx); err != nil {
		return err
	}
	return r.Client.Chat.Update().Where(entchat.ID(r.answer.ChatID)).SetUpdatedAt(clock.Now()).Exec(ctx) // it may be deleted
}
