package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/modelmock"
	"github.com/berthhq/berth/manager/chat/live"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// logs keeps what is logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newChats returns a site whose model "m" writes 100 tokens in a second, and has no deployment yet.
func newChats(t *testing.T, more func(*gateway.Config)) *site {
	s := &site{Cluster: clustertest.New(t, 0), t: t, engine: modelmock.Config{Model: "m", Decode: 100}, more: more}
	s.join()
	return s
}

func (s *site) deploy() uuid.UUID {
	id := s.must("createDeployment", managertest.Vars{"name": "m", "revision": s.revision()})
	s.await(id, "it serves", func(d *ent.Deployment) bool { return d.Status == entdeployment.StatusServing })
	return id
}

// chat creates a chat, and returns its ID.
func (s *site) chat(in managertest.Vars) uuid.UUID {
	s.t.Helper()
	var made struct {
		CreateChat struct{ Chat struct{ ID uuid.UUID } }
	}
	s.Member.Must(s.t, `mutation($in: CreateChatInput!) { createChat(input: $in) { chat { id } } }`, managertest.Vars{"in": in}, &made)
	return made.CreateChat.Chat.ID
}

func column(deployment uuid.UUID, parameters managertest.Vars) managertest.Vars {
	return managertest.Vars{"model": managertest.Vars{"deployment": deployment}, "parameters": parameters}
}

// send sends a prompt, and returns its turn.
func (s *site) send(in managertest.Vars) uuid.UUID {
	s.t.Helper()
	var made struct {
		SendChatPrompt struct{ Turn struct{ ID uuid.UUID } }
	}
	s.Member.Must(s.t, `mutation($in: SendChatPromptInput!) { sendChatPrompt(input: $in) { turn { id } } }`, managertest.Vars{"in": in}, &made)
	return made.SendChatPrompt.Turn.ID
}

func (s *site) answers(turn uuid.UUID) []*ent.ChatAnswer {
	return s.Client.ChatAnswer.Query().Where(chatanswer.TurnID(turn)).Order(chatanswer.ByPlace(), chatanswer.ByCreatedAt(), chatanswer.ByID()).AllX(s.System(s.t))
}

// done waits until all answers to a prompt have ended.
func (s *site) done(turn uuid.UUID) []*ent.ChatAnswer {
	s.t.Helper()
	var list []*ent.ChatAnswer
	managertest.Eventually(s.t, "the answers have ended", func() bool {
		list = s.answers(turn)
		for _, a := range list {
			if a.EndedAt == nil {
				return false
			}
		}
		return len(list) > 0
	})
	return list
}

// update is an update of a subscription.
type update struct {
	Chat   *struct{ ID uuid.UUID }
	Answer *struct {
		ID     uuid.UUID
		Status string
		Text   string
	}
	Delta *struct {
		Answer uuid.UUID
		TextAt int
		Text   string
	}
}

// follow reads updates of a chat until until returns true, and returns the text of each answer as a client puts it together.
func (s *site) follow(as *managertest.Client, chat uuid.UUID, until func(update) bool) map[uuid.UUID]string {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	query, _ := json.Marshal(map[string]any{
		"query":     `subscription($id: ID!) { chatUpdates(id: $id) { chat { id } answer { id status text } delta { answer textAt text } } }`,
		"variables": map[string]any{"id": chat},
	})
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, as.URL+"/graphql", bytes.NewReader(query))
	r.Header = as.Header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	texts := map[uuid.UUID]string{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "" {
			continue
		}
		var got struct {
			Data   struct{ ChatUpdates update }
			Errors managertest.Errors
		}
		if err := json.Unmarshal([]byte(data), &got); err != nil || len(got.Errors) > 0 {
			s.t.Errorf("update %s: %v", data, err)
			return texts
		}
		u := got.Data.ChatUpdates
		if u.Answer != nil {
			texts[u.Answer.ID] = u.Answer.Text
		}
		if d := u.Delta; d != nil {
			if d.TextAt != len(texts[d.Answer]) {
				s.t.Errorf("a delta at %d of %q", d.TextAt, texts[d.Answer])
			}
			texts[d.Answer] = texts[d.Answer][:d.TextAt] + d.Text
		}
		if until(u) {
			return texts
		}
	}
	return texts
}

func ended(u update) bool { return u.Answer != nil && u.Answer.Status == "DONE" }

// A prompt to two columns streams to two subscribers, of which one comes late, and continues after it; no log has the prompt.
func TestChatStreams(t *testing.T) {
	written := &logs{}
	s := newChats(t, func(c *gateway.Config) {
		c.Logger = slog.New(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s.serve()
	m := s.deploy()
	id := s.chat(managertest.Vars{"columns": []managertest.Vars{column(m, managertest.Vars{"maxTokens": 60}), column(m, managertest.Vars{"maxTokens": 5, "system": "short"})}})
	turn := s.send(managertest.Vars{"chat": id, "prompt": "zebra one two three"})
	var both sync.WaitGroup
	results := make([]map[uuid.UUID]string, 2)
	for i := range results {
		both.Go(func() {
			n := 0
			results[i] = s.follow(s.Member, id, func(u update) bool {
				if ended(u) {
					n++
				}
				return ended(u) && s.answers(turn)[0].ID == u.Answer.ID
			})
		})
		managertest.Eventually(t, "the first answer runs", func() bool { return s.answers(turn)[0].Status != chatanswer.StatusWaiting })
	}
	both.Wait()
	list := s.done(turn)
	long, short := list[0], list[1]
	for i, texts := range results {
		if texts[long.ID] != long.Text {
			t.Errorf("subscriber %d has %q, want %q", i, texts[long.ID], long.Text)
		}
	}
	if long.Status != chatanswer.StatusDone || len(strings.Fields(long.Text)) != 60 || len(strings.Fields(short.Text)) != 5 || !strings.HasPrefix(long.Text, "zebra one") {
		t.Errorf("answers %q and %q", long.Text, short.Text)
	}
	x := long.Measured
	if x == nil || x.FirstToken == nil || x.Duration == nil || *x.Duration < *x.FirstToken || x.CompletionTokens == nil || *x.CompletionTokens != 60 || x.TokensPerSecond == nil {
		t.Errorf("metrics %+v", x)
	}
	if long.AnsweredBy == nil || *long.AnsweredBy != 1 || long.SessionID == nil {
		t.Errorf("answered by %v in %v", long.AnsweredBy, long.SessionID)
	}

	// The next prompt continues each column with its own answer.
	next := s.send(managertest.Vars{"chat": id, "previous": turn, "prompt": "four"})
	for i, a := range s.done(next) {
		if a.Previous == nil || *a.Previous != list[i].ID {
			t.Errorf("column %d continues %v", i, a.Previous)
		}
		if before := *list[i].Measured.PromptTokens; *a.Measured.PromptTokens <= before {
			t.Errorf("column %d was sent %d tokens, before %d", i, *a.Measured.PromptTokens, before)
		}
	}
	if strings.Contains(written.String(), "zebra") {
		t.Error("the prompt is in a log")
	}
	entries := s.Client.AuditEntry.Query().AllX(s.System(t))
	if text := fmt.Sprint(entries); strings.Contains(text, "zebra") || !strings.Contains(text, "sendChatPrompt") {
		t.Errorf("the prompt is in the audit log, or its request is not: %s", text)
	}
	if errs := s.Member.Ask(t, `mutation($in: SendChatPromptInput!) { sendChatPrompt(input: $in) { turn { id } } }`,
		managertest.Vars{"in": managertest.Vars{"chat": id, "prompt": strings.Repeat("zebra", 60_000)}}, nil); len(errs) != 1 || errs[0].Extensions.Field != "prompt" || strings.Contains(errs.String(), "zebra") {
		t.Errorf("a prompt that is too long: %.500v", errs)
	}
}

// A prompt starts the replica of a model that sleeps, and says so; a revision without a replica fails at once.
func TestChatWakesAModel(t *testing.T) {
	s := newChats(t, nil)
	s.serve()
	m := s.must("createDeployment", managertest.Vars{"name": "m", "revision": s.revision(), "replicas": 0, "scaling": managertest.Vars{"min": 0}})
	id := s.chat(managertest.Vars{"columns": []managertest.Vars{column(m, managertest.Vars{"maxTokens": 3})}})
	turn := s.send(managertest.Vars{"chat": id, "prompt": "one two three"})
	notes := map[string]bool{}
	managertest.Eventually(t, "the answer has ended", func() bool {
		a := s.answers(turn)[0]
		notes[a.Note] = true
		return a.EndedAt != nil
	})
	a := s.done(turn)[0]
	if a.Text != "one two three" || a.Measured.Waited == nil || *a.Measured.Waited == 0 || len(notes) < 2 {
		t.Errorf("%s %q after %v", a.Status, a.Text, notes)
	}

	s.Client.DeploymentRevision.Create().SetDeploymentID(m).SetNumber(7).SetVariant("custom").SetRequest([]byte(`{"Image":"i:1"}`)).SetEngine([]byte(`{"Port":1}`)).SetImage("i:1").ExecX(s.System(t))
	pinned := managertest.Vars{"model": managertest.Vars{"deployment": m, "revision": 7}}
	other := s.chat(managertest.Vars{"columns": []managertest.Vars{pinned}})
	if a := s.done(s.send(managertest.Vars{"chat": other, "prompt": "x"}))[0]; a.Status != chatanswer.StatusFailed || !strings.Contains(a.Note, "revision 7") {
		t.Errorf("a revision without a replica: %s %q", a.Status, a.Note)
	}

	// 16 answers of a user can run.
	s.Member.Must(t, `mutation($in: UpdateChatInput!) { updateChat(input: $in) { chat { id } } }`, managertest.Vars{"in": managertest.Vars{
		"id": id, "columns": []managertest.Vars{column(m, managertest.Vars{"maxTokens": 5000})},
	}}, nil)
	for range 16 {
		s.send(managertest.Vars{"chat": id, "prompt": "x"})
	}
	errs := s.Member.Ask(t, `mutation($in: SendChatPromptInput!) { sendChatPrompt(input: $in) { turn { id } } }`, managertest.Vars{"in": managertest.Vars{"chat": id, "prompt": "x"}}, nil)
	if errs.Code() != "RESOURCE_EXHAUSTED" || errs[0].Extensions.Limit != "16" {
		t.Errorf("the 17th answer: %v", errs)
	}
}

// An answer stops when a person stops it, and when its gateway ends; one of a gateway that was killed ends with its text in Redis.
func TestChatStops(t *testing.T) {
	s := newChats(t, nil)
	stop := s.serve()
	m := s.deploy()
	id := s.chat(managertest.Vars{"columns": []managertest.Vars{column(m, managertest.Vars{"maxTokens": 5000})}})
	running := func(turn uuid.UUID) {
		managertest.Eventually(t, "the answer runs", func() bool { return s.answers(turn)[0].Status == chatanswer.StatusRunning })
	}
	turn := s.send(managertest.Vars{"chat": id, "prompt": "a b"})
	running(turn)
	s.Member.Must(t, `mutation($in: StopChatAnswersInput!) { stopChatAnswers(input: $in) { chat { id } } }`, managertest.Vars{"in": managertest.Vars{"chat": id}}, nil)
	if a := s.done(turn)[0]; a.Status != chatanswer.StatusStopped || a.Text == "" || a.Measured.Duration == nil {
		t.Errorf("stopped: %s %q", a.Status, a.Text)
	}

	turn = s.send(managertest.Vars{"chat": id, "prompt": "c d"})
	running(turn)
	stop()
	if a := s.done(turn)[0]; a.Status != chatanswer.StatusInterrupted || a.Text == "" || a.Note == "" {
		t.Errorf("after the end of the gateway: %s %q %q", a.Status, a.Text, a.Note)
	}

	// No gateway runs now: an answer waits, and can be stopped.
	turn = s.send(managertest.Vars{"chat": id, "prompt": "e f"})
	s.Member.Must(t, `mutation($in: StopChatAnswersInput!) { stopChatAnswers(input: $in) { chat { id } } }`, managertest.Vars{"in": managertest.Vars{"chat": id}}, nil)
	if a := s.done(turn)[0]; a.Status != chatanswer.StatusStopped {
		t.Errorf("without a gateway: %s", a.Status)
	}
	killed := s.Client.ChatAnswer.Create().SetTurnID(turn).SetChatID(id).SetOwnerID(s.A.Member.ID).SetPlace(0).SetAsked(conversation.Asked{}).
		SetStatus(chatanswer.StatusRunning).SetGateway(uuid.New()).SetText("one").SaveX(s.System(t))
	if err := (live.Store{Redis: s.Redis(t)}).Append(t.Context(), killed.ID, live.Part{Text: "one two"}); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "the answer of the killed gateway is interrupted", func() bool {
		a := s.Client.ChatAnswer.GetX(s.System(t), killed.ID)
		return a.Status == chatanswer.StatusInterrupted && a.Text == "one two"
	})
}
