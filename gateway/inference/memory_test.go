package inference

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/modelmock"
)

// The prompts of streams that are being answered are not kept. It runs alone, because it reads the heap of the process.
func TestPromptsOfStreamsAreNotKept(t *testing.T) {
	const streams, size = 64, 1 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, "data: {\"size\":%d}\n\n", n)
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close) // after those of the requests
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	body := `{"model":"mock","stream":true,"prompt":"` + strings.Repeat("x", size) + `"}`
	before := heap()
	for range streams {
		resp := w.ask(t.Context(), "/v1/completions", body)
		part := make([]byte, 64)
		if n, err := resp.Body.Read(part); err != nil || !strings.Contains(string(part[:n]), "size") {
			t.Fatalf("%q %v", part[:n], err)
		}
	}
	if more := int(heap()) - int(before); more > streams*size/4 {
		t.Errorf("%d streams keep %d MiB, their prompts have %d MiB", streams, more>>20, streams*size>>20)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
