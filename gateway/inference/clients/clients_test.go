package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/modelmock"
)

// programs ask the router for the same things, each with OpenAI's client in its language.
var programs = []struct {
	name string
	argv []string // the first one exists when the client is installed
	// errors are the types that the client has for a status; nil: it has one type for all.
	errors map[float64]string
}{
	{
		"Python", []string{"../../../bin/tools/openai-python/bin/python", "testdata/python/check.py"},
		map[float64]string{400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError", 429: "RateLimitError"},
	},
	{
		"npm", []string{"testdata/node/node_modules/openai/package.json", "node", "testdata/node/check.mjs"},
		map[float64]string{400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError", 429: "RateLimitError"},
	},
	{"Go", []string{"../../../bin/tools/openai-go"}, nil},
}

// want is what every client must print. The prompt is "one two three", and the engine answers with its words.
const want = `{
	"models": ["tiny"],
	"chat": {"text": "one two three one", "usage": [4, 4], "reason": "length"},
	"completion": "one two one",
	"stream": {"text": "one two three one two", "usage": null, "parts": true},
	"streamWithUsage": {"text": "one two three one two", "usage": [4, 5], "parts": true},
	"tool": {"name": "weather", "arguments": {"city": "one two three", "days": 2}, "reason": "tool_calls"},
	"toolStream": {"name": "weather", "arguments": {"city": "one two three", "days": 2}, "reason": "tool_calls"},
	"answerOfTool": "sunny day",
	"object": {"answer": "one two three"},
	"schema": {"word": "one two three", "right": true},
	"embeddings": {"lengths": [4, 4], "numbers": true},
	"left": true,
	"wrongKey": {"status": 401, "code": "invalid_api_key", "after": null},
	"unknownModel": {"status": 404, "code": "model_not_found", "after": null},
	"limit": {"status": 429, "code": "rate_limit_exceeded", "after": "7"},
	"budget": {"status": 429, "code": "insufficient_quota", "after": null},
	"afterLimit": "one",
	"badRequest": {"status": 400, "code": "invalid_request_error", "after": null}
}`

func TestClients(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(p.argv[0]); err != nil {
				t.Fatalf("the client is not installed, run `make openai-clients`: %v", err)
			}
			argv := p.argv
			if filepath.Base(argv[0]) == "package.json" {
				argv = argv[1:]
			}
			w := newWorld(t)
			got := w.run(argv...)
			for name, v := range got {
				if e, is := v.(map[string]any); is && e["status"] != nil {
					kind := "Error"
					if p.errors != nil {
						kind = p.errors[e["status"].(float64)]
					}
					if e["type"] != kind {
						t.Errorf("%s is an error of the type %v, want %s", name, e["type"], kind)
					}
					delete(e, "type")
				}
			}
			var expected map[string]any
			if err := json.Unmarshal([]byte(want), &expected); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("the client got something else (-want +got):\n%s", diff)
			}
			w.check()
		})
	}
}

// world is a router with two replicas of the model "tiny".
type world struct {
	t     *testing.T
	url   string
	model *inference.Model

	mu      sync.Mutex
	opened  map[string]int // requests of a key
	records []inference.Record
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, model: inference.NewModel("tiny", nil), opened: map[string]int{}}
	var targets []inference.Target
	for i := range 2 {
		engine := httptest.NewServer(modelmock.New(modelmock.Config{Model: "tiny", Decode: 1000}))
		t.Cleanup(engine.Close)
		address, _ := url.Parse(engine.URL)
		targets = append(targets, inference.Target{ID: fmt.Sprint("r", i), Weight: 1, Transport: to(address.Host)})
	}
	w.model.Update(targets...)
	router := httptest.NewServer(inference.New(inference.Config{Models: w}))
	t.Cleanup(router.Close)
	w.url = router.URL
	return w
}

// to is the transport to a host.
type to string

func (host to) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = string(host)
	return http.DefaultTransport.RoundTrip(r)
}

func (w *world) Open(_ context.Context, key, model string, _ modelapi.API) (*inference.Access, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened[key]++
	switch {
	case key == "wrong":
		return nil, errdefs.ErrUnauthenticated
	case key == "limited" || key == "limited-once" && w.opened[key] == 1:
		after := time.Second
		if key == "limited" {
			after = 6500 * time.Millisecond
		}
		return nil, &inference.Limit{Message: "the key has used its 60 requests per minute", After: after}
	case key == "spent":
		return nil, fmt.Errorf("the key has spent its budget: %w", errdefs.ErrResourceExhausted)
	case model != "tiny":
		return nil, fmt.Errorf("the model %q does not exist: %w", model, errdefs.ErrNotFound)
	}
	return &inference.Access{Model: w.model, Tenant: key, Count: func(r inference.Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.records = append(w.records, r)
	}}, nil
}

func (w *world) Names(context.Context, string) ([]string, error) { return []string{"tiny"}, nil }

// run runs a program and returns the object that it prints.
func (w *world) run(argv ...string) map[string]any {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "OPENAI_BASE_URL=" + w.url + "/v1", "OPENAI_API_KEY=good", "MODEL=tiny"}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s%s", argv, err, out, complaint.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		w.t.Fatalf("%v printed %q: %v", argv, out, err)
	}
	return got
}

// check checks what the client did that it cannot print: it retried after a limit alone, and the stream that it left
// has ended.
func (w *world) check() {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); w.model.Outstanding("r0")+w.model.Outstanding("r1") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("the engine still works for a client that has left")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened["spent"] != 1 || w.opened["limited-once"] != 2 {
		w.t.Errorf("requests over the budget: %d, want 1; around a limit: %d, want 2", w.opened["spent"], w.opened["limited-once"])
	}
	uncounted := 0
	for _, r := range w.records {
		if !r.Counted {
			uncounted++
		}
	}
	if uncounted != 1 {
		w.t.Errorf("%d of %d answers have no usage, want 1: the stream that the client left", uncounted, len(w.records))
	}
}
