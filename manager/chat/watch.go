package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/chat/live"
	"github.com/berthhq/berth/manager/permit"
)

const (
	// ByAnswer marks events about the state of answers alone.
	ByAnswer = "answer"
	// deltaEvery is the time between two looks for more text of answers that run.
	deltaEvery = 50 * time.Millisecond
	// overlap is how far back a look for answers that have ended goes: clocks of machines differ.
	overlap = 30 * time.Second
	// againAfter is the time before a read that failed is retried.
	againAfter = time.Second
)

// Watch sends the changes of a chat that the viewer can see until ctx ends, or they cannot see it any longer. First it sends the
// answers that have not ended. It reads when the receiver is ready, so a slow receiver gets fewer and larger parts.
func (s *Service) Watch(ctx context.Context, id uuid.UUID) (<-chan *Update, error) {
	w := &watch{Service: s, chat: id, out: make(chan *Update), known: map[uuid.UUID]*seen{}, since: clock.Now()}
	events := s.Bus.Subscribe(ctx, event.Chat)
	if _, err := s.Client.Chat.Get(ctx, id); err != nil {
		return nil, permit.Missing(err, "chat", "id")
	}
	first, err := w.answers(ctx, chatanswer.EndedAtIsNil())
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(w.out)
		if w.send(ctx, first...) {
			w.run(ctx, events)
		}
	}()
	return w.out, nil
}

// watch is one subscription.
type watch struct {
	*Service
	chat  uuid.UUID
	out   chan *Update
	known map[uuid.UUID]*seen // answers that have not ended
	ended map[uuid.UUID]bool  // answers whose end was sent, of the last time
	since time.Time
}

// seen is what a subscriber has of an answer.
type seen struct {
	status          chatanswer.Status
	note            string
	at              live.Place
	text, reasoning int // UTF-16 code units
}

func (w *watch) run(ctx context.Context, events <-chan event.Event) {
	tick := time.NewTicker(deltaEvery)
	defer tick.Stop()
	var again <-chan time.Time
	for {
		running := tick.C
		if !slices.ContainsFunc(slices.Collect(maps.Values(w.known)), func(x *seen) bool { return x.status == chatanswer.StatusRunning }) {
			running = nil
		}
		var list []*Update
		var err error
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			if e.Topic != event.Lagged && e.ID != w.chat {
				continue
			}
			list, err = w.refresh(ctx, e.By != ByAnswer)
		case <-again:
			list, err = w.refresh(ctx, true)
		case <-running:
			list, err = w.deltas(ctx)
		}
		switch {
		case errdefs.IsNotFound(err) || ctx.Err() != nil: // deleted, or the link was revoked
			return
		case err != nil:
			w.Logger.WarnContext(ctx, "read a chat for a subscription", "chat", w.chat, "error", err)
			again = time.After(againAfter)
			continue
		}
		again = nil
		if !w.send(ctx, list...) {
			return
		}
	}
}

func (w *watch) send(ctx context.Context, list ...*Update) bool {
	for _, u := range list {
		select {
		case <-ctx.Done():
			return false
		case w.out <- u:
		}
	}
	return true
}

// refresh returns the chat, if it may have changed, and the answers whose state has changed.
func (w *watch) refresh(ctx context.Context, all bool) ([]*Update, error) {
	c, err := w.Client.Chat.Get(ctx, w.chat)
	if err != nil {
		return nil, permit.Missing(err, "chat", "id")
	}
	begun := clock.Now()
	list, err := w.answers(ctx, chatanswer.Or(
		chatanswer.EndedAtIsNil(), chatanswer.EndedAtGT(w.since.Add(-overlap)), chatanswer.IDIn(slices.Collect(maps.Keys(w.known))...),
	))
	if err != nil {
		return nil, err
	}
	w.since = begun
	if all {
		list = append([]*Update{{Chat: c}}, list...)
	}
	return list, nil
}

// answers returns those of the answers whose state the subscriber does not know, with their text so far.
func (w *watch) answers(ctx context.Context, which predicate.ChatAnswer) ([]*Update, error) {
	rows, err := w.Client.ChatAnswer.Query().Where(chatanswer.ChatID(w.chat), which).Order(chatanswer.ByCreatedAt(), chatanswer.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	rows = slices.DeleteFunc(rows, func(a *ent.ChatAnswer) bool {
		x := w.known[a.ID]
		return w.ended[a.ID] || x != nil && x.status == a.Status && x.note == a.Note
	})
	open := map[uuid.UUID]live.Place{}
	for _, a := range rows {
		if a.EndedAt == nil {
			open[a.ID] = live.Place{}
		}
	}
	texts := map[uuid.UUID]live.Part{}
	if len(open) > 0 {
		if texts, err = w.Live.Read(ctx, open); err != nil {
			return nil, err
		}
	}
	var list []*Update
	for _, a := range rows {
		if p := texts[a.ID]; len(p.Text)+len(p.Reasoning) > len(a.Text)+len(a.Reasoning) {
			a.Text, a.Reasoning = p.Text, p.Reasoning
		}
		list = append(list, &Update{Answer: a})
		w.note(a)
	}
	return list, nil
}

// note remembers what the subscriber gets of an answer.
func (w *watch) note(a *ent.ChatAnswer) {
	if a.EndedAt != nil {
		delete(w.known, a.ID)
		if w.ended == nil || len(w.ended) > 10*maxReplayed {
			w.ended = map[uuid.UUID]bool{}
		}
		w.ended[a.ID] = true
		return
	}
	w.known[a.ID] = &seen{a.Status, a.Note, live.Place{Text: len(a.Text), Reasoning: len(a.Reasoning)}, units(a.Text), units(a.Reasoning)}
}

// deltas returns more of the answers that run.
func (w *watch) deltas(ctx context.Context) ([]*Update, error) {
	from := map[uuid.UUID]live.Place{}
	for id, x := range w.known {
		if x.status == chatanswer.StatusRunning {
			from[id] = x.at
		}
	}
	parts, err := w.Live.Read(ctx, from)
	if err != nil {
		return nil, err
	}
	var list []*Update
	for id, p := range parts {
		if p.Empty() {
			continue
		}
		x := w.known[id]
		list = append(list, &Update{Delta: &Delta{Answer: id, TextAt: x.text, Text: p.Text, ReasoningAt: x.reasoning, Reasoning: p.Reasoning}})
		x.at, x.text, x.reasoning = x.at.After(p), x.text+units(p.Text), x.reasoning+units(p.Reasoning)
	}
	return list, nil
}

// units returns the length of a text in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
