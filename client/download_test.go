package client

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/containerd/errdefs"
)

// breaking passes only the first bytes of an answer on.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func TestDownloadResumes(t *testing.T) {
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	for name, c := range map[string]struct {
		etags []string // entity tag of each answer
		fails bool
	}{
		"same file":    {etags: []string{`"a"`, `"a"`, `"a"`, `"a"`, `"a"`}},
		"file changed": {etags: []string{`"a"`, `"b"`}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/graphql" {
					fmt.Fprint(w, `{"data":{"createDownload":{"url":"/storage/download?ticket=t","expiresAt":"2030-01-01T00:00:00Z"}}}`)
					return
				}
				if r.Header.Get("Authorization") != "" {
					t.Error("the access token went to the storage proxy")
				}
				w.Header().Set("ETag", c.etags[n])
				n++
				http.ServeContent(&breaking{w, 300 << 10}, r, "f", time.Time{}, bytes.NewReader(data))
			})
			var out bytes.Buffer
			last := int64(0)
			d := Download{Folder: "f", Path: "x", Progress: func(done, total int64) {
				if last = done; total != int64(len(data)) {
					t.Errorf("total %d, want %d", total, len(data))
				}
			}}
			err := d.CopyTo(t.Context(), cl, &out)
			if c.fails {
				if !errdefs.IsFailedPrecondition(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !bytes.Equal(out.Bytes(), data) || last != int64(len(data)) {
				t.Errorf("%d bytes, progress %d, %v", out.Len(), last, err)
			}
		})
	}
}
