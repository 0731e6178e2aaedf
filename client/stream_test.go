package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

// events answers a subscription with the data of each event, and then completes it or cuts the
// connection.
func events(w http.ResponseWriter, complete bool, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ":\n\n")
	for _, d := range data {
		fmt.Fprintf(w, "event: next\ndata: %s\n\n: ping\n\n", d)
	}
	if complete {
		fmt.Fprint(w, "event: complete\n\n")
		return
	}
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler) // in the middle of the stream
}

func chunk(log string, from, to int) string {
	b, _ := json.Marshal(map[string]any{"data": map[string]any{"kernelLogs": map[string]any{"text": log[from:to], "offset": from, "nextOffset": to}}})
	return string(b)
}

func asked(t *testing.T, r *http.Request) (vars struct {
	Offset    *int
	TailLines *int
	Follow    bool
}) {
	t.Helper()
	var req struct{ Variables json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(req.Variables, &vars); err != nil {
		t.Error(err)
	}
	return vars
}

// A log arrives complete and once, although the stream breaks after every chunk, within lines, and
// although one answer repeats earlier bytes.
func TestLogStreamResumes(t *testing.T) {
	var log strings.Builder
	for i := range 300 {
		fmt.Fprintf(&log, "line %d of a log\n", i)
	}
	text, calls := log.String(), 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		v := asked(t, r)
		if v.Offset == nil {
			t.Fatal("asked without an offset")
		}
		from := *v.Offset
		if calls == 3 {
			from = max(from-100, 0) // a repetition
		}
		to := min(from+1700, len(text))
		events(w, to == len(text), chunk(text, from, (from+to)/2), chunk(text, (from+to)/2, to))
	})
	var out bytes.Buffer
	pauses := 0
	l := LogStream{Kernel: "k", Follow: true, Warn: func(error) { pauses++ }}
	if err := l.CopyTo(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Error(diff)
	}
	if calls < 3 || pauses != calls-1 {
		t.Errorf("%d calls, %d pauses", calls, pauses)
	}
}

func TestLogStreamTailThenOffset(t *testing.T) {
	text, calls := "one\ntwo\nthree\nfour\n", 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		v := asked(t, r)
		if calls == 1 {
			if v.TailLines == nil || *v.TailLines != 2 || v.Offset != nil {
				t.Errorf("first call asked for %+v", v)
			}
			events(w, false, chunk(text, 8, 14))
		}
		if v.TailLines != nil || v.Offset == nil || *v.Offset != 14 {
			t.Errorf("second call asked for %+v", v)
		}
		events(w, true, chunk(text, 14, len(text)))
	})
	var out bytes.Buffer
	l := LogStream{Kernel: "k", Follow: true, Tail: 2}
	if err := l.CopyTo(t.Context(), c, &out); err != nil || out.String() != "three\nfour\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestLogStreamTellsOfLostBytes(t *testing.T) {
	text := "0123456789"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { events(w, true, chunk(text, 4, 10)) })
	var out bytes.Buffer
	var warned error
	l := LogStream{Kernel: "k", Warn: func(err error) { warned = err }}
	if err := l.CopyTo(t.Context(), c, &out); err != nil || out.String() != "456789" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if !errdefs.IsOutOfRange(warned) {
		t.Errorf("warned %v", warned)
	}
}

func TestSubscriptionRefused(t *testing.T) {
	refusal := `{"data":null,"errors":[{"message":"no such kernel","extensions":{"code":"NOT_FOUND"}}]}`
	for name, h := range map[string]http.HandlerFunc{
		"in the stream": func(w http.ResponseWriter, r *http.Request) { events(w, true, refusal) },
		"before the stream": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, refusal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := LogStream{Kernel: "k"}
			if err := l.CopyTo(t.Context(), serve(t, h), &bytes.Buffer{}); !errdefs.IsNotFound(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWatchSessionKeepsNewerStates(t *testing.T) {
	state := func(version int, status string) string {
		return fmt.Sprintf(`{"data":{"sessionChanged":{"id":"s","version":%d,"name":"n","status":%q,"kernels":[{"id":"k","role":"MAIN"}]}}}`, version, status)
	}
	var mu sync.Mutex
	calls := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls++
		n := calls
		mu.Unlock()
		switch n {
		case 1:
			events(w, false, state(1, "PENDING"), state(3, "CREATING"))
		case 2: // a server that stops completes its streams
			events(w, true, state(2, "SCHEDULED"))
		default:
			events(w, true, state(4, "RUNNING"), state(5, "TERMINATED"), state(6, "never seen"))
		}
	})
	var got []string
	err := c.WatchSession(t.Context(), "s", nil, func(s SessionState) bool {
		got = append(got, s.Status.String())
		return !s.Ended()
	})
	if diff := cmp.Diff([]string{"pending", "creating", "running", "terminated"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
