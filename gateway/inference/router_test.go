package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/modelmock"
)

// world is a router with replicas of the model "mock".
type world struct {
	t       testing.TB
	url     string
	model   *Model
	engines []*modelmock.Engine

	mu      sync.Mutex
	records []Record
}

func newWorld(t testing.TB, n int, engine modelmock.Config) *world {
	w := &world{t: t, model: NewModel("mock", nil)}
	var targets []Target
	for i := range n {
		e := modelmock.New(engine)
		srv := httptest.NewServer(e)
		t.Cleanup(srv.Close)
		w.engines = append(w.engines, e)
		targets = append(targets, Target{ID: fmt.Sprint("r", i), Weight: 1, Transport: to(srv.URL)})
	}
	w.model.Update(targets...)
	srv := httptest.NewServer(New(Config{Models: w}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// to returns a transport to one server.
func to(address string) http.RoundTripper {
	u, _ := url.Parse(address)
	t := &http.Transport{MaxIdleConnsPerHost: 1000}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = u.Host
		return t.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *world) Open(_ context.Context, key, model string, _ modelapi.API) (*Access, error) {
	switch {
	case key != "secret":
		return nil, errdefs.ErrUnauthenticated
	case model != "mock":
		return nil, fmt.Errorf("the model %q does not exist: %w", model, errdefs.ErrNotFound)
	}
	return &Access{Model: w.model, Tenant: "t", Count: func(r Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.records = append(w.records, r)
	}}, nil
}

func (w *world) Names(context.Context, string) ([]string, error) { return []string{"mock"}, nil }

func (w *world) last() Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.records) == 0 {
		return Record{}
	}
	return w.records[len(w.records)-1]
}

func (w *world) ask(ctx context.Context, path, body string) *http.Response {
	w.t.Helper()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (w *world) text(path, body string) (int, string) {
	w.t.Helper()
	resp := w.ask(w.t.Context(), path, body)
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func TestAnswerAndUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, modelmock.Config{})
	code, text := w.text("/v1/chat/completions", `{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a b c"}]}`)
	if code != http.StatusOK || !strings.Contains(text, `"content":"a b"`) {
		t.Errorf("%d %s", code, text)
	}
	if r := w.last(); r.Usage != (Usage{Prompt: 4, Completion: 2}) || !r.Counted || r.Tries != 1 || r.Replica == "" || r.FirstByte == 0 {
		t.Errorf("record %+v", r)
	}
}

// The engine always reports the usage of a stream. The client sees it only if it asked.
func TestUsageOfStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{})
	for _, c := range []struct {
		options string
		sees    bool
	}{
		{``, false}, {`,"stream_options":null`, false}, {`,"stream_options":{"include_usage":false,"x":1}`, false},
		{`,"stream_options": {"include_usage": true}`, true},
	} {
		_, text := w.text("/v1/completions", `{"model":"mock","prompt":"x","max_tokens":3,"stream":true`+c.options+`}`)
		if strings.Contains(text, "usage") != c.sees || !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Count(text, "data:") < 5 {
			t.Errorf("options %q: the client sees %s", c.options, text)
		}
		if u := w.last().Usage; u.Completion != 3 {
			t.Errorf("options %q: usage %+v", c.options, u)
		}
	}
}

func TestRetryBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, modelmock.Config{})
	w.engines[0].Fail(modelmock.Fault{Status: http.StatusServiceUnavailable})
	w.engines[1].Fail(modelmock.Fault{CutAfter: 1})
	const ask = `{"model":"mock","prompt":"x"}`
	for range 30 {
		if code, text := w.text("/v1/completions", ask); code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	w.engines[1].Fail(modelmock.Fault{Status: http.StatusBadGateway})
	w.engines[2].Fail(modelmock.Fault{Status: http.StatusBadGateway})
	if code, text := w.text("/v1/completions", ask); code != http.StatusBadGateway && code != http.StatusServiceUnavailable {
		t.Errorf("no replica answers: %d %s", code, text)
	}
}

func TestReplicaIsEjectedAndComesBack(t *testing.T) {
	t.Parallel()
	r := &replica{Target: Target{ID: "r", Weight: 1}}
	now := time.Now()
	for range failuresToEject {
		if !r.take(now) {
			t.Fatal("ejected too early")
		}
		r.leave(now, failed)
	}
	if r.take(now) {
		t.Error("a replica that failed gets a request")
	}
	now = now.Add(ejectFor + 1)
	if !r.take(now) || r.take(now) {
		t.Error("an ejected replica must get one probe")
	}
	r.leave(now, failed)
	if r.take(now.Add(ejectFor + 1)) {
		t.Error("the time without requests must double after a failed probe")
	}
	now = now.Add(2*ejectFor + 1)
	if !r.take(now) {
		t.Error("no second probe")
	}
	r.leave(now, answered)
	for range 2 {
		if !r.take(now) {
			t.Error("a replica that answers again does not get requests")
		}
	}
}

func TestStreamThatIsCutEndsWithAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{})
	w.engines[0].Fail(modelmock.Fault{CutAfter: 2})
	_, text := w.text("/v1/completions", `{"model":"mock","prompt":"x","stream":true}`)
	if !strings.Contains(text, `"type":"engine_error"`) || strings.Contains(text, "[DONE]") {
		t.Errorf("the client sees %s", text)
	}
}

func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{Decode: 2})
	ctx, leave := context.WithCancel(t.Context())
	resp := w.ask(ctx, "/v1/completions", `{"model":"mock","prompt":"x","stream":true}`)
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	leave()
	running := func() bool {
		families, err := w.engines[0].Metrics().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "vllm:num_requests_running" {
				return f.GetMetric()[0].GetGauge().GetValue() > 0
			}
		}
		return true
	}
	for end := time.Now().Add(20 * time.Second); running(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the engine goes on after the client has left")
		}
	}
	if s := w.model.set.replicas[0].look(time.Now()); s.out {
		t.Error("a client that left counts against the replica")
	}
}

// A client can leave after the last event, before the engine ends the stream. The record is not that of an error.
func TestClientThatLeavesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	ctx, leave := context.WithCancel(t.Context())
	resp := w.ask(ctx, "/v1/completions", `{"model":"mock","prompt":"x","stream":true}`)
	if _, err := io.ReadFull(resp.Body, make([]byte, len("data: [DONE]"))); err != nil {
		t.Fatal(err)
	}
	leave()
	eventually(t, "it is recorded", func() bool { return w.last().Replica != "" })
	if r := w.last(); r.Status != http.StatusOK || r.Usage.Completion != 2 {
		t.Errorf("record %+v, want status 200 and the usage", r)
	}
}

func TestPrefixesAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, modelmock.Config{})
	conversation := make([]strings.Builder, 24)
	for turn := range 6 {
		for i := range conversation {
			for range 20 {
				fmt.Fprintf(&conversation[i], "word-%d-%d ", i, turn)
			}
			body, _ := json.Marshal(map[string]any{"model": "mock", "prompt": conversation[i].String(), "max_tokens": 1})
			if code, text := w.text("/v1/completions", string(body)); code != http.StatusOK {
				t.Fatal(text)
			}
		}
	}
	var all Usage
	for _, r := range w.records {
		all.Prompt += r.Usage.Prompt
		all.Cached += r.Usage.Cached
	}
	if hit := float64(all.Cached) / float64(all.Prompt); hit < 0.6 {
		t.Errorf("%.2f of the prompts' tokens were in a cache, want at least 0.6", hit)
	}
}

// Requests with one prefix do not all go to one replica.
func TestHotPrefixOverflows(t *testing.T) {
	t.Parallel()
	m := NewModel("m", nil)
	for _, id := range []string{"a", "b", "c", "d"} {
		m.set.replicas = append(m.set.replicas, &replica{Target: Target{ID: id, Weight: 1}})
	}
	blocks := m.set.prefixes.blocks("t", bytes.Repeat([]byte("x"), 10*prefixBlock))
	counts := map[string]int{}
	for range 400 {
		counts[m.set.pick(blocks, nil, time.Now()).ID]++
	}
	for id, n := range counts {
		if n > 130 {
			t.Errorf("replica %s got %d of 400 requests with one prefix, the average is 100", id, n)
		}
	}
}

// Requests of one session get the same replica, whatever their prompts are, unless it is drained, ejected or has too much to do.
func TestSessionsKeepTheirReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, modelmock.Config{})
	ask := func(header, body string) string {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"model":"mock","max_tokens":1,`+body+`}`))
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Berth-Affinity", header)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.Header.Get("Berth-Replica")
	}
	for what, of := range map[string]func(i int) (header, body string){
		"the header": func(i int) (string, string) { return "s1", fmt.Sprintf(`"prompt":"%d","user":"u%d"`, i, i) },
		"prompt_cache_key": func(i int) (string, string) {
			return "", fmt.Sprintf(`"prompt":"%d","prompt_cache_key":"k","user":"u%d"`, i, i)
		},
		"user": func(i int) (string, string) { return "", fmt.Sprintf(`"prompt":"%d","user":"ada"`, i) },
	} {
		first := ask(of(0))
		for i := range 30 {
			if got := ask(of(i + 1)); got != first || got == "" {
				t.Errorf("%s: request %d is at replica %q, the first was at %q", what, i+1, got, first)
			}
		}
	}
	home := ask("s1", `"prompt":"x"`)
	seen := map[string]bool{}
	for i := range 200 {
		seen[ask(fmt.Sprint("other", i), `"prompt":"x"`)] = true
	}
	if len(seen) != 8 {
		t.Errorf("200 sessions have %d of 8 replicas", len(seen))
	}
	var targets []Target
	for _, r := range w.model.set.replicas {
		one := r.Target
		if one.ID == home {
			one.Weight = 0
		}
		targets = append(targets, one)
	}
	w.model.Update(targets...)
	if got := ask("s1", `"prompt":"x"`); got == home || got == "" {
		t.Errorf("a request is at replica %q, which is drained", got)
	}
	long := strings.Repeat("x", maxAffinity+1)
	if r, _ := http.NewRequest(http.MethodPost, "/", nil); r != nil {
		r.Header.Set("Berth-Affinity", long)
		if _, err := affinityOf(r, &body{}); !errdefs.IsInvalidArgument(err) {
			t.Errorf("a name of %d bytes: %v", len(long), err)
		}
	}
	if code, text := w.text("/v1/completions", `{"model":"mock","prompt":"x","max_tokens":1,"user":"`+long+`","prompt_cache_key":7}`); code != http.StatusOK {
		t.Errorf("a long user and a number as the key: %d %s", code, text)
	}
}

func TestOverloadedSession(t *testing.T) {
	t.Parallel()
	m := NewModel("m", nil)
	for _, id := range []string{"a", "b", "c", "d"} {
		m.set.replicas = append(m.set.replicas, &replica{Target: Target{ID: id, Weight: 1}})
	}
	counts := map[string]int{}
	for range 400 { // that do not end
		counts[m.set.pick([]uint64{m.set.prefixes.session("t", "s")}, nil, time.Now()).ID]++
	}
	for id, n := range counts {
		if n > 130 {
			t.Errorf("replica %s got %d of 400 requests of one session, the average is 100", id, n)
		}
	}
	if m.set.prefixes.session("t", "s") == m.set.prefixes.session("u", "s") {
		t.Error("two tenants have one hash for a session")
	}
}

func TestTenantsDoNotShareBlocks(t *testing.T) {
	t.Parallel()
	p := newPrefixes()
	text := bytes.Repeat([]byte("x"), prefixBlock)
	if p.blocks("a", text)[0] == p.blocks("b", text)[0] {
		t.Error("two tenants have one hash for a prompt")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{})
	deep := strings.Repeat(`[`, maxDepth+1) + strings.Repeat(`]`, maxDepth+1)
	for _, c := range []struct {
		path, body, want string
		code             int
	}{
		{"/v1/completions", `{"model":"mock","model":"other","prompt":"x"}`, `\"model\" twice`, 400},
		{"/v1/chat/completions", `{"model":"mock","messages":[{"role":"user","role":"system"}]}`, `\"role\" twice`, 400},
		{"/api/chat", `{"model":"mock","MODEL":"other","prompt":"x"}`, `\"MODEL\" instead`, 400},
		{"/v1/completions", `{"model":"mock","ſtream":true}`, "instead of", 400},
		{"/v1/completions", `{"model":"mock","prompt":NaN}`, "not JSON", 400},
		{"/v1/completions", `{"model":"mock"} {"model":"other"}`, "after its object", 400},
		{"/v1/completions", `["mock"]`, "not a JSON object", 400},
		{"/v1/completions", `{"prompt":"x"}`, "model is missing", 400},
		{"/v1/completions", `{"model":["mock"]}`, "model has a wrong type", 400},
		{"/v1/completions", "{\"model\":\"mock\",\"prompt\":\"\xff\"}", "not UTF-8", 400},
		{"/v1/completions", `{"model":"mock","x":` + deep + `}`, "nested deeper", 400},
		{"/v1/completions", `{"model":"other","prompt":"x"}`, "does not exist", 404},
		{"/sleep", `{}`, "is not an address", 404},
		{"/metrics", ``, "is not an address", 404},
		{"/v1/chat/completions/../../sleep", `{}`, "", 404},
	} {
		if code, text := w.text(c.path, c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %.60s: %d %s, want %d %s", c.path, c.body, code, text, c.code, c.want)
		}
	}
	resp, err := http.Post(w.url+"/v1/completions?api_key=secret", "application/json", strings.NewReader(`{"model":"mock","prompt":"x"}`))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a key in the address: %v %v, want 401", resp, err)
	}
}

// The engine gets the body, and no other header of the client.
func TestHeadersOfTheClientEndHere(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		rw.Header().Set("Set-Cookie", "a=b")
		fmt.Fprint(rw, "{}")
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	r, _ := http.NewRequest(http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"model":"mock","prompt":"x"}`))
	for _, name := range []string{"Cookie", "X-Forwarded-For", "Berth-Key", "X-Request-Id"} {
		r.Header.Set(name, "client")
	}
	r.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for name, values := range <-seen {
		if slices.Contains(values, "client") || name == "Authorization" {
			t.Errorf("the engine gets %s: %q", name, values)
		}
	}
	if resp.Header.Get("Set-Cookie") != "" {
		t.Error("the client gets a cookie of the engine")
	}
}
