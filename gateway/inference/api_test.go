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

// The streams of the other APIs pass as they are, and their tokens are counted.
func TestStreamsOfOtherAPIs(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		kind, text string
		want       Usage
	}{
		"/v1/messages": {"text/event-stream", `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":16,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"the word \"usage\" is counted by no one"}}

event: message_delta
data: {"type":"message_delta","usage":{"output_tokens":15}}

`, Usage{Prompt: 25, Completion: 15, Cached: 16}},
		"/v1/responses": {"text/event-stream", `event: response.completed
data: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":3,"input_tokens_details":{"cached_tokens":4}}}}

`, Usage{Prompt: 7, Completion: 3, Cached: 4}},
		"/api/chat": {"application/x-ndjson", `{"message":{"role":"assistant","content":"a"},"done":false}
{"message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":26,"eval_count":2}
`, Usage{Prompt: 26, Completion: 2}},
		"/api/generate": {"application/x-ndjson", `{"response":"a","done":false}
{"response":"","done":true,"prompt_eval_count":5,"eval_count":9}
`, Usage{Prompt: 5, Completion: 9}},
	} {
		var body string
		srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			body = string(b)
			rw.Header().Set("Content-Type", c.kind)
			fmt.Fprint(rw, c.text)
		}))
		w := newWorld(t, 0, modelmock.Config{})
		w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
		const asked = `{"model":"mock","stream":true,"prompt":"x"}`
		code, text := w.text(path, asked)
		srv.Close()
		if code != http.StatusOK || text != c.text || body != asked {
			t.Errorf("%s: %d, the engine gets %s, the client gets\n%s", path, code, body, text)
		}
		if r := w.last(); r.Usage != c.want || !r.Counted {
			t.Errorf("%s: usage %+v, want %+v", path, r.Usage, c.want)
		}
	}
}

// A stream of lines that is cut ends with an error in a line.
func TestLinesThatAreCut(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprintln(rw, `{"response":"a","done":false}`)
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	_, text := w.text("/api/generate", `{"model":"mock","prompt":"x"}`)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], `{"error":`) {
		t.Errorf("the client gets %q", lines)
	}
}
