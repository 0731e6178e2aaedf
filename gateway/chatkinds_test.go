package gateway_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/manager/managertest"
)

// outside is a server outside the cluster, with a certificate of its own.
type outside struct {
	*httptest.Server
	bodies, keys chan string
}

func newOutside(t *testing.T) *outside {
	o := &outside{bodies: make(chan string, 10), keys: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.bodies <- string(body)
		o.keys <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"<think>hm</think>hello"}}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
	})
	mux.HandleFunc("POST /moved/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/v1/chat/completions", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("POST /echo/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"what is %s?"}}`, r.Header.Get("Authorization"))
	})
	o.Server = httptest.NewTLSServer(mux)
	t.Cleanup(o.Close)
	return o
}

// endpoint adds an endpoint, and returns a chat with it.
func (s *site) endpoint(name, url string) (endpoint, chat uuid.UUID) {
	s.t.Helper()
	var made struct {
		CreateChatEndpoint struct{ Endpoint struct{ ID uuid.UUID } }
	}
	s.Manager.As(s.t, s.Superadmin).Must(s.t, `mutation($in: CreateChatEndpointInput!) { createChatEndpoint(input: $in) { endpoint { id } } }`,
		managertest.Vars{"in": managertest.Vars{"name": name, "url": url, "key": "sk-secret", "models": []string{"big"}}}, &made)
	endpoint = made.CreateChatEndpoint.Endpoint.ID
	return endpoint, s.chat(managertest.Vars{"columns": []managertest.Vars{{"model": managertest.Vars{"endpoint": endpoint, "name": "big"}}}})
}

// Endpoints get the prompt and their key, and nothing else does: not the network of the platform, not a server that a redirect
// names, and not a user.
func TestChatEndpoints(t *testing.T) {
	o := newOutside(t)
	roots := x509.NewCertPool()
	roots.AddCert(o.Certificate())
	s := newChats(t, func(c *gateway.Config) { c.ChatRoots, c.ChatNetworks = roots, []string{"127.0.0.1"} })
	stop := s.serve()
	id, chat := s.endpoint("good", o.URL+"/v1/")
	a := s.done(s.send(managertest.Vars{"chat": chat, "prompt": "hi"}))[0]
	if a.Status != chatanswer.StatusDone || a.Text != "hello" || a.Reasoning != "hm" || *a.Measured.PromptTokens != 3 || *a.Measured.CompletionTokens != 2 {
		t.Errorf("the answer of the endpoint: %s %q %q %q", a.Status, a.Note, a.Text, a.Reasoning)
	}
	if key := <-o.keys; key != "Bearer sk-secret" {
		t.Errorf("the endpoint got %q", key)
	}
	if body := <-o.bodies; !strings.Contains(body, `"model":"big"`) || !strings.Contains(body, `"hi"`) {
		t.Errorf("the endpoint got %s", body)
	}
	for name, path := range map[string]string{"redirect": "/moved", "echo": "/echo"} {
		_, chat := s.endpoint(name, o.URL+path)
		if a := s.done(s.send(managertest.Vars{"chat": chat, "prompt": "hi"}))[0]; a.Status != chatanswer.StatusFailed || strings.Contains(a.Note, "sk-secret") || a.Note == "" {
			t.Errorf("%s: %s %q", name, a.Status, a.Note)
		}
	}
	if len(o.bodies) > 0 {
		t.Error("the redirect was followed")
	}
	s.hides(id)
	root := s.Manager.As(t, s.Superadmin)
	if errs := root.Ask(t, `mutation($id: ID!) { updateChatEndpoint(input: {id: $id, url: "https://other.example.com"}) { endpoint { id } } }`, managertest.Vars{"id": id}, nil); len(errs) != 1 {
		t.Errorf("the key would go to another server: %v", errs)
	}
	root.Must(t, `mutation($id: ID!) { updateChatEndpoint(input: {id: $id, enabled: false}) { endpoint { id } } }`, managertest.Vars{"id": id}, nil)
	if a := s.done(s.send(managertest.Vars{"chat": chat, "prompt": "hi"}))[0]; a.Status != chatanswer.StatusFailed || !strings.Contains(a.Note, "not enabled") {
		t.Errorf("disabled: %s %q", a.Status, a.Note)
	}
	stop()

	// Without a network of the operator, no address of this machine can be reached, under any name.
	s.more = func(c *gateway.Config) { c.ChatRoots = roots }
	s.serve()
	for i, url := range []string{o.URL, strings.Replace(o.URL, "127.0.0.1", "localhost", 1), "https://169.254.169.254", "https://[::1]:1", "https://0.0.0.0:1"} {
		_, chat := s.endpoint(fmt.Sprint("inside", i), url+"/v1")
		if a := s.done(s.send(managertest.Vars{"chat": chat, "prompt": "hi"}))[0]; a.Status != chatanswer.StatusFailed || !strings.Contains(a.Note, "not on the Internet") {
			t.Errorf("%s: %s %q", url, a.Status, a.Note)
		}
	}
	if len(o.bodies) > 0 {
		t.Error("an address of this machine was reached")
	}
}

// hides checks that a user can see neither the key nor the address of an endpoint.
func (s *site) hides(id uuid.UUID) {
	s.t.Helper()
	var got json.RawMessage
	s.Member.Must(s.t, `query($id: ID!) { chatEndpoints { edges { node { id name url models hasKey } } } node(id: $id) { ... on ChatEndpoint { name url hasKey } } }`,
		managertest.Vars{"id": id}, &got)
	if text := string(got); strings.Contains(text, "sk-secret") || strings.Contains(text, "https:") || !strings.Contains(text, `"hasKey":true`) {
		s.t.Errorf("a user sees %s", text)
	}
}

// everything reads all fields of a chat.
const everything = `fragment A on ChatAnswer { id column status message text reasoning model { name revision deployment { name } } parameters { system temperature maxTokens stop }
	revision session { id name } metrics { firstToken duration waited promptTokens completionTokens tokensPerSecond } }
query($id: ID!) { chat(id: $id) { own blind title columns { number model { name deployment { name } } parameters { system maxTokens } }
	turns(first: 100) { edges { node { id prompt attachments { name data } answers { ...A } votes { winner answers blind } } } }
	replays { column model { name revision } answers { prompt equal similarity original { id } repeated { ...A } } } } exportChat(id: $id) }`

// A blind chat says nothing about its models until the vote, which is counted.
func TestBlindChat(t *testing.T) {
	s := newChats(t, nil)
	s.serve()
	m := s.deploy()
	id := s.chat(managertest.Vars{"blind": true, "columns": []managertest.Vars{
		column(m, managertest.Vars{"maxTokens": 7, "system": "same"}), column(m, managertest.Vars{"maxTokens": 9, "system": "same"}),
	}})
	turn := s.send(managertest.Vars{"chat": id, "prompt": "x y z"})
	list := s.done(turn)
	var got json.RawMessage
	s.Member.Must(t, everything, managertest.Vars{"id": id}, &got)
	for _, secret := range []string{`"name":"m"`, `"maxTokens":7`, `"maxTokens":9`, `"revision":1`, `"duration":`, `\"maxTokens\"`, `\"metrics\"`, `\"name\"`} {
		if strings.Contains(string(got), secret) {
			t.Errorf("before the vote, the chat has %s: %s", secret, got)
		}
	}
	if !strings.Contains(string(got), `"system":"same"`) {
		t.Errorf("the common instruction is hidden: %s", got)
	}
	replay := managertest.Vars{"in": managertest.Vars{"chat": id, "column": 0, "model": managertest.Vars{"deployment": m}}}
	if errs := s.Member.Ask(t, `mutation($in: ReplayChatInput!) { replayChat(input: $in) { replay { id } } }`, replay, nil); len(errs) == 0 {
		t.Error("a replay shows the parameters before the vote")
	}
	vote := managertest.Vars{"in": managertest.Vars{"turn": turn, "answers": []uuid.UUID{list[0].ID, list[1].ID}, "winner": list[1].ID}}
	s.Member.Must(t, `mutation($in: VoteChatAnswerInput!) { voteChatAnswer(input: $in) { chat { id } } }`, vote, nil)
	s.Member.Must(t, everything, managertest.Vars{"id": id}, &got)
	for _, shown := range []string{`"name":"m"`, `"maxTokens":7`, `"revision":1`, `"duration":`, `"blind":true`} {
		if !strings.Contains(string(got), shown) {
			t.Errorf("after the vote, the chat lacks %s: %s", shown, got)
		}
	}
	var tally struct {
		ChatTally []struct {
			Model              struct{ Name string }
			Revision           int
			Wins, Losses, Ties int
		}
	}
	s.Member.Must(t, `query($d: ID!) { chatTally(deployment: $d) { model { name } revision wins losses ties } }`, managertest.Vars{"d": m}, &tally)
	if x := tally.ChatTally; len(x) != 1 || x[0].Model.Name != "m" || x[0].Revision != 1 || x[0].Wins != 1 || x[0].Losses != 1 || x[0].Ties != 0 {
		t.Errorf("tally %+v", x)
	}
	s.Manager.As(t, s.B.Member).Must(t, `{ chatTally { wins } }`, nil, &tally)
	if len(tally.ChatTally) != 0 {
		t.Errorf("another domain sees the tally %+v", tally.ChatTally)
	}
}

// Answers are repeated, branches have their own conversation, and a document has all of them.
func TestChatBranchesAndReplays(t *testing.T) {
	s := newChats(t, nil)
	s.serve()
	m := s.deploy()
	id := s.chat(managertest.Vars{"columns": []managertest.Vars{column(m, managertest.Vars{"maxTokens": 4})}})
	first := s.send(managertest.Vars{"chat": id, "prompt": "one two", "attachments": []managertest.Vars{{"name": "a.txt", "type": "text/plain", "data": "dGhyZWU="}}})
	one := s.done(first)[0]
	s.Member.Must(t, `mutation($in: RegenerateChatAnswerInput!) { regenerateChatAnswer(input: $in) { turn { id } } }`, managertest.Vars{"in": managertest.Vars{"turn": first, "column": 0}}, nil)
	again := s.done(first)
	if len(again) != 2 || again[1].Text != one.Text {
		t.Fatalf("another answer: %v", again)
	}
	left := s.done(s.send(managertest.Vars{"chat": id, "previous": first, "prompt": "left", "after": []managertest.Vars{{"column": 0, "answer": one.ID}}}))[0]
	rightTurn := s.send(managertest.Vars{"chat": id, "previous": first, "prompt": "right"})
	right := s.done(rightTurn)[0]
	if *left.Previous != one.ID || *right.Previous != again[1].ID {
		t.Errorf("the branches continue %v and %v", left.Previous, right.Previous)
	}

	s.must("addDeploymentRevision", managertest.Vars{"deployment": m, "revision": s.revision()})
	managertest.Eventually(t, "revision 2 serves", func() bool { return s.Client.Deployment.GetX(s.System(t), m).Current == 2 })
	s.Member.Must(t, `mutation($in: ReplayChatInput!) { replayChat(input: $in) { replay { id } } }`,
		managertest.Vars{"in": managertest.Vars{"chat": id, "column": 0, "model": managertest.Vars{"deployment": m, "revision": 2}}}, nil)
	var got struct {
		Chat struct {
			Replays []struct {
				Answers []struct {
					Prompt     string
					Equal      *bool
					Similarity *float64
					Original   struct{ ID uuid.UUID }
					Repeated   struct{ Revision *int }
				}
			}
		}
		ExportChat string
	}
	managertest.Eventually(t, "the replay has ended", func() bool {
		s.Member.Must(t, everything, managertest.Vars{"id": id}, &got)
		list := got.Chat.Replays[0].Answers
		return list[0].Equal != nil && list[len(list)-1].Equal != nil
	})
	list := got.Chat.Replays[0].Answers
	if len(list) != 2 || list[0].Original.ID != again[1].ID || list[1].Original.ID != right.ID || !*list[0].Equal || *list[1].Similarity != 1 || *list[0].Repeated.Revision != 2 {
		t.Errorf("replay %+v", list)
	}
	s.copies(got.ExportChat)
	s.shares(id, rightTurn)
}

// copies imports a document, and checks that the export of the copy is the same but for ids and times.
func (s *site) copies(document string) {
	s.t.Helper()
	var made struct {
		ImportChat struct{ Chat struct{ ID uuid.UUID } }
	}
	s.Member.Must(s.t, `mutation($d: String!) { importChat(input: {document: $d}) { chat { id } } }`, managertest.Vars{"d": document}, &made)
	var got struct{ ExportChat string }
	s.Member.Must(s.t, `query($id: ID!) { exportChat(id: $id) }`, managertest.Vars{"id": made.ImportChat.Chat.ID}, &got)
	count := func(text string) (n []int) {
		for _, part := range []string{`"prompt"`, `"previous"`, `"text": "one two`, `"data": "dGhyZWU="`, `"name": "m"`, `"status": "done"`} {
			n = append(n, strings.Count(text, part))
		}
		return n
	}
	if a, b := count(document), count(got.ExportChat); fmt.Sprint(a) != fmt.Sprint(b) || a[0] != 3 || a[2] != 2 {
		s.t.Errorf("the copy of %v has %v: %s", a, b, got.ExportChat)
	}
	for _, bad := range []string{"", "{}", document + "{}", strings.Replace(document, `"previous"`, `"previos"`, 1), strings.Replace(document, "berth.chat/1", "berth.chat/9", 1)} {
		if errs := s.Member.Ask(s.t, `mutation($d: String!) { importChat(input: {document: $d}) { chat { id } } }`, managertest.Vars{"d": bad}, nil); len(errs) == 0 {
			s.t.Errorf("imported %.40q", bad)
		}
	}
	if chats := s.Client.Chat.Query().CountX(s.System(s.t)); chats != 2 {
		s.t.Errorf("%d chats: a document that was refused left a part", chats)
	}
}

// shares checks who can read a chat with its link, and that only the owner changes it.
func (s *site) shares(id, turn uuid.UUID) {
	s.t.Helper()
	other, foreign, root := s.Manager.As(s.t, s.A.Loner), s.Manager.As(s.t, s.B.Member), s.Manager.As(s.t, s.Superadmin)
	sees := func(c *managertest.Client) bool {
		var got struct {
			Chat *struct{ Own bool }
			Node *struct{ Prompt string }
		}
		c.Must(s.t, `query($id: ID!, $turn: ID!) { chat(id: $id) { own } node(id: $turn) { ... on ChatTurn { prompt } } }`, managertest.Vars{"id": id, "turn": turn}, &got)
		if (got.Chat == nil) != (got.Node == nil) {
			s.t.Errorf("chat %v, turn %v", got.Chat, got.Node)
		}
		return got.Chat != nil
	}
	share := func(shared bool) {
		s.Member.Must(s.t, `mutation($id: ID!, $s: Boolean!) { updateChat(input: {id: $id, shared: $s}) { chat { id } } }`, managertest.Vars{"id": id, "s": shared}, nil)
	}
	if !sees(s.Member) || sees(other) || sees(root) {
		s.t.Error("a chat that is not shared is visible to others, or not to its owner")
	}
	share(true)
	if !sees(other) || sees(foreign) {
		s.t.Error("a shared chat is not visible in the domain, or is visible outside it")
	}
	var list struct{ Chats struct{ TotalCount int } }
	other.Must(s.t, `{ chats { totalCount } }`, nil, &list)
	if list.Chats.TotalCount != 0 {
		s.t.Error("a shared chat is in the list of another user")
	}
	for _, m := range []string{
		`updateChat(input: {id: $id, title: "x"}) { chat { id } }`, `deleteChat(input: {id: $id}) { id }`, `sendChatPrompt(input: {chat: $id, prompt: "x"}) { turn { id } }`,
		`stopChatAnswers(input: {chat: $id}) { chat { id } }`, `replayChat(input: {chat: $id, column: 0, model: {}}) { replay { id } }`,
	} {
		if errs := other.Ask(s.t, `mutation($id: ID!) { `+m+` }`, managertest.Vars{"id": id}, nil); errs.Code() != "PERMISSION_DENIED" {
			s.t.Errorf("%s by a reader: %v", m, errs)
		}
	}
	share(false)
	if sees(other) {
		s.t.Error("the link works after it was revoked")
	}
	s.Member.Must(s.t, `{ chats(text: "RIGHT two") { totalCount } }`, nil, &list)
	if list.Chats.TotalCount != 2 {
		s.t.Errorf("a search finds %d chats, want the chat and its copy", list.Chats.TotalCount)
	}
	s.Member.Must(s.t, `mutation($id: ID!) { deleteChat(input: {id: $id}) { id } }`, managertest.Vars{"id": id}, nil)
	if n := s.Client.ChatAnswer.Query().Where(chatanswer.ChatID(id)).CountX(s.System(s.t)); n != 0 {
		s.t.Errorf("%d answers are left", n)
	}
}
