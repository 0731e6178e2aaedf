package inference

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/modelmock"
)

func (w *world) get(path, key string) (int, string) {
	w.t.Helper()
	r, _ := http.NewRequest(http.MethodGet, w.url+path, nil)
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// At the address of a model, the body can leave the model out and cannot name another one.
func TestAddressOfAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{})
	for _, c := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/deployments/mock/v1/completions", `{"prompt":"x","max_tokens":1}`, 200, `"model":"mock"`},
		{"/deployments/mock/v1/completions", `{"prompt":"x","stream":true}`, 200, "[DONE]"},
		{"/deployments/mock/v1/completions", `{"model":"mock","prompt":"x"}`, 200, `"model":"mock"`},
		{"/deployments/mock/v1/completions", `{"model":"other","prompt":"x"}`, 400, `the address is that of \"mock\"`},
		{"/deployments/mock/v1/completions", `{"model":null,"prompt":"x"}`, 400, "model is empty"},
		{"/deployments/other/v1/completions", `{"prompt":"x"}`, 404, "does not exist"},
		{"/deployments/mock/sleep", `{}`, 404, "is not an address"},
		{"/deployments/mock/metrics", `{}`, 404, "is not an address"},
		{"/deployments/mock%2F..%2F../v1/completions", `{"prompt":"x"}`, 404, "does not exist"},
		{"/v1/completions", `{"prompt":"x"}`, 400, "model is missing"},
	} {
		if code, text := w.text(c.path, c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, code, text, c.code, c.want)
		}
	}
	for path, want := range map[string]string{
		"/deployments/mock/v1/models": `200 {"data":[{"created":0,"id":"mock"`, "/deployments/other/v1/models": `404 {"error":`,
		"/v1/models/mock": `200 {"created":0,"id":"mock"`, "/v1/models/other": `404 {"error":`, "/deployments/mock/v1/models/mock": `200 {"created"`,
	} {
		if code, text := w.get(path, "secret"); !strings.HasPrefix(fmt.Sprint(code, " ", text), want) {
			t.Errorf("%s: %d %s, want %s", path, code, text, want)
		}
	}
}

// Addresses that are for administrators of an engine are closed, whatever the method.
func TestAddressesOfEngines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, modelmock.Config{})
	for _, path := range []string{
		"/tokenize", "/detokenize", "/v1/tokenize", "/sleep", "/wake_up", "/metrics", "/version", "/v1/load_lora_adapter", "/reset_prefix_cache", "/slots", "/props",
		"/api/pull", "/api/delete", "/v2/repository/index", "/mock/fault", "/collective_rpc", "/v1/internal",
	} {
		for _, prefix := range []string{"", "/deployments/mock"} {
			if code, text := w.text(prefix+path, `{"model":"mock"}`); code != http.StatusNotFound {
				t.Errorf("POST %s: %d %s, want 404", prefix+path, code, text)
			}
			if code, text := w.get(prefix+path, "secret"); code != http.StatusNotFound {
				t.Errorf("GET %s: %d %s, want 404", prefix+path, code, text)
			}
		}
	}
}

// A file passes as it comes. The client sees when it is cut, and an error of the engine as such.
func TestFilesOfAnswers(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "bad") {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"error":{"message":"bad voice"}}`)
			return
		}
		rw.Header().Set("Content-Type", "audio/mpeg")
		fmt.Fprint(rw, "\xff\xfbone")
		_ = http.NewResponseController(rw).Flush()
		<-first
		if strings.Contains(string(body), "cut") {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(rw, "two")
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	resp := w.ask(t.Context(), "/v1/audio/speech", `{"model":"mock","input":"x","voice":"a"}`)
	part := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != "\xff\xfbone" || resp.Header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("the file begins with %q %v, type %s", part, err, resp.Header.Get("Content-Type"))
	}
	close(first)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("the file ends with %q %v", rest, err)
	}
	resp = w.ask(t.Context(), "/v1/audio/speech", `{"model":"mock","input":"cut"}`)
	if rest, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a file that is cut looks complete: %q", rest)
	}
	eventually(t, "the request is over", func() bool { return w.model.Outstanding("r") == 0 })
	if code, text := w.text("/v1/audio/speech", `{"model":"mock","input":"x","voice":"bad"}`); code != http.StatusBadRequest || !strings.Contains(text, "bad voice") {
		t.Errorf("an error: %d %s", code, text)
	}
}

// An engine's answer does not become a page of the gateway.
func TestAnswersAreNotPages(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, "<script>alert(1)</script>")
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	for _, path := range []string{"/v1/completions", "/v1/audio/speech"} {
		h := w.ask(t.Context(), path, `{"model":"mock"}`).Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, modelmock.Config{Decode: 1})
	w.ask(t.Context(), "/v1/completions", `{"model":"mock","prompt":"x","stream":true}`)
	s := w.model.State()
	if len(s.Replicas) != 2 || s.Replicas[0].Outstanding+s.Replicas[1].Outstanding != 1 || s.Waiting != 0 || s.Replicas[0].Ejected {
		t.Errorf("state %+v", s)
	}
	for _, e := range w.engines {
		e.Fail(modelmock.Fault{Status: http.StatusBadGateway})
	}
	for range failuresToEject {
		w.text("/v1/completions", `{"model":"mock","prompt":"x"}`)
	}
	if s := w.model.State(); !s.Replicas[0].Ejected || !s.Replicas[1].Ejected {
		t.Errorf("state %+v, want both ejected", s)
	}
}
