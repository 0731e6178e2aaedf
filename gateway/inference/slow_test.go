package inference

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/modelmock"
)

// A client that takes nothing of its stream loses it, and the engine stops.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		rw.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := fmt.Fprintf(rw, "data: %s\n\n", strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
	}))
	defer engine.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(engine.URL)})
	srv := httptest.NewServer(New(Config{Models: w, WriteTimeout: 200 * time.Millisecond}))
	defer srv.Close()
	c, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"model":"mock","prompt":"x","stream":true}`
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Fatal("the engine still writes")
	}
	eventually(t, "the request is over", func() bool { return w.model.Outstanding("r") == 0 })
}
