package inference

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/modelmock"
)

// asleep is a world without replicas, that counts how often one is called for.
func asleep(t *testing.T) (w *world, engine string, waiting, starts *atomic.Int64) {
	w = newWorld(t, 0, modelmock.Config{})
	waiting, starts = &atomic.Int64{}, &atomic.Int64{}
	w.model = NewModel("mock", func(n int) {
		if waiting.Swap(int64(n)) == 0 && n > 0 {
			starts.Add(1)
		}
	})
	srv := httptest.NewServer(modelmock.New(modelmock.Config{}))
	t.Cleanup(srv.Close)
	return w, srv.URL, waiting, starts
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not: " + what)
		}
	}
}

// Requests wait for the first replica, one start is called for, and those beyond the limit are refused at once.
func TestRequestsWaitForAReplica(t *testing.T) {
	t.Parallel()
	w, engine, waiting, starts := asleep(t)
	const all = maxWaiting + 20
	codes := make(chan int, all)
	for range all {
		go func() {
			r, _ := http.NewRequest(http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"model":"mock","prompt":"x"}`))
			r.Header.Set("Authorization", "Bearer secret")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				codes <- 0
				return
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
				codes <- -1
				return
			}
			codes <- resp.StatusCode
		}()
	}
	for range all - maxWaiting {
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Errorf("a request beyond the limit: %d, want 429 with Retry-After", code)
		}
	}
	eventually(t, "all wait", func() bool { return waiting.Load() == maxWaiting })
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(engine)})
	for range maxWaiting {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request that waited: %d, want 200", code)
		}
	}
	if waiting.Load() != 0 || starts.Load() != 1 {
		t.Errorf("%d wait, %d starts; want 0 and 1", waiting.Load(), starts.Load())
	}
	if w.last().Waited == 0 {
		t.Error("the record does not say that the request waited")
	}
}

// A stream that waits shows how far the start is, and its errors are events.
func TestStreamsShowTheStart(t *testing.T) {
	t.Parallel()
	w, engine, _, _ := asleep(t)
	w.model.Report("pulling the image: 10 %\ndata: forged")
	const body = `{"model":"mock","prompt":"x","max_tokens":2,"stream":true}`
	resp := w.ask(t.Context(), "/v1/completions", body)
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return fmt.Sprint("the end: ", lines.Err())
	}
	if line := next(); line != ": pulling the image: 10 % data: forged" {
		t.Errorf("the stream begins with %q", line)
	}
	w.model.Report("loading the model")
	if line := next(); line != ": loading the model" {
		t.Errorf("the stream continues with %q", line)
	}
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(engine)})
	if line := next(); !strings.HasPrefix(line, "data: {") {
		t.Errorf("the answer begins with %q", line)
	}

	w.model.Update()
	resp = w.ask(t.Context(), "/v1/completions", body)
	lines = bufio.NewScanner(resp.Body)
	next()
	w.model.Update(Target{ID: "r", Weight: 1, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("refused")
	})})
	if line := next(); !strings.HasPrefix(line, `data: {"error":`) {
		t.Errorf("the error is %q", line)
	}
}

func TestClientThatLeavesWhileItWaits(t *testing.T) {
	t.Parallel()
	w, _, waiting, _ := asleep(t)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"model":"mock","prompt":"x"}`))
		r.Header.Set("Authorization", "Bearer secret")
		_, _ = http.DefaultClient.Do(r)
	}()
	eventually(t, "it waits", func() bool { return waiting.Load() == 1 })
	leave()
	eventually(t, "nobody waits", func() bool { return waiting.Load() == 0 })
	eventually(t, "it is recorded", func() bool { return w.last().Status == statusLeft })
}

// A replica with a limit gets no more than that at a time, and the others wait.
func TestLimitOfAReplica(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		fmt.Fprint(rw, "{}")
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Limit: 2, Transport: to(srv.URL)})
	done := make(chan int, 20)
	for range cap(done) {
		go func() {
			code, _ := w.text("/v1/completions", `{"model":"mock","prompt":"x"}`)
			done <- code
		}()
	}
	for range cap(done) {
		if code := <-done; code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	if most.Load() > 2 {
		t.Errorf("the replica had %d requests at a time, its limit is 2", most.Load())
	}
}

// Requests that wait for a model that ends are refused, and later ones at once.
func TestModelThatEnds(t *testing.T) {
	t.Parallel()
	w, _, waiting, _ := asleep(t)
	code := make(chan int, 1)
	go func() {
		got, _ := w.text("/v1/completions", `{"model":"mock","prompt":"x"}`)
		code <- got
	}()
	eventually(t, "the request waits", func() bool { return waiting.Load() == 1 })
	w.model.End()
	if got := <-code; got != http.StatusNotFound {
		t.Errorf("status %d, want 404", got)
	}
	if got, _ := w.text("/v1/completions", `{"model":"mock","prompt":"x"}`); got != http.StatusNotFound {
		t.Errorf("the next request: status %d, want 404", got)
	}
}
