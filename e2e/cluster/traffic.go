package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Traffic sends chat completions to a model until it is ended. A request that a gateway did not answer is sent to the next
// one, as a balancer in front of them does.
type Traffic struct {
	Key       string
	Request   string   // body of a chat completion
	Addresses []string // of the models of gateways

	stop     chan struct{}
	done     sync.WaitGroup
	mu       sync.Mutex
	answered int
	failed   []string
}

// errNotSent is the error of a request that did not reach a gateway that lives.
var errNotSent = errors.New("no gateway answers")

// Begin sends requests, four at a time.
func (x *Traffic) Begin() {
	x.stop = make(chan struct{})
	for worker := range 4 {
		x.done.Go(func() {
			for n := worker; ; n++ {
				select {
				case <-x.stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				err := x.Once(n)
				x.mu.Lock()
				if err == nil {
					x.answered++
				} else {
					x.failed = append(x.failed, err.Error())
				}
				x.mu.Unlock()
			}
		})
	}
}

// Once sends one request, to address n first.
func (x *Traffic) Once(n int) error {
	for try := range x.Addresses {
		r, err := http.NewRequest(http.MethodPost, x.Addresses[(n+try)%len(x.Addresses)]+"/chat/completions", strings.NewReader(x.Request))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+x.Key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: status %d: %s", r.URL, resp.StatusCode, bytes.TrimSpace(body))
		}
		return nil
	}
	return errNotSent
}

// End stops the traffic and fails the test if a request failed.
func (x *Traffic) End(t testing.TB) {
	t.Helper()
	close(x.stop)
	x.done.Wait()
	t.Logf("%d requests were answered", x.answered)
	if len(x.failed) > 0 || x.answered == 0 {
		t.Errorf("%d requests were answered, %d failed, such as %q", x.answered, len(x.failed), x.failed[:min(3, len(x.failed))])
	}
}

// ModelKey returns the key in the output of berth deploy key create.
func ModelKey(out string) string {
	for word := range strings.FieldsSeq(out) {
		if strings.HasPrefix(word, "bmk_") && len(word) > 20 {
			return word
		}
	}
	return ""
}
