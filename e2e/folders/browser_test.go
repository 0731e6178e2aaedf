package folders

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/e2e/cluster"
)

// steer serves an HTTP interface through which a script can pause and cut a wire.
func steer(t *testing.T, w *cluster.Wire) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hold", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
		w.Hold(n)
	})
	mux.HandleFunc("POST /held", func(rw http.ResponseWriter, _ *http.Request) {
		for deadline := time.Now().Add(cluster.Timeout); !w.Held(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				http.Error(rw, "no client has sent so much", http.StatusGatewayTimeout)
				return
			}
		}
	})
	mux.HandleFunc("POST /cut", func(http.ResponseWriter, *http.Request) { w.Cut() })
	mux.HandleFunc("POST /mend", func(http.ResponseWriter, *http.Request) { w.Restore() })
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Close()
		w.Restore()
	})
	return s
}

// A user drops a thousand files into the page. During the upload, the connection is paused and cut,
// and the page is reloaded. In the end, all files are stored, and at most one chunk of a file was
// sent twice.
func TestFolderIsDroppedIntoThePage(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	source := filepath.Join(berth.Dir, "dropped")
	total := fill(t, source, 1000, 40<<20)
	folder := folderOn(t, u, "disk", "page")
	before := sent()
	u.Walk("upload", "BERTH_FOLDER="+folder, "BERTH_SOURCE="+source, "BERTH_WIRE="+steer(t, platform.Wires[0]).URL)
	if t.Failed() {
		return
	}
	again := sent() - before - total
	t.Logf("%d bytes of files, %d more were sent", total, again)
	const chunk, around = 8 << 20, 1000 * 5 << 10 // overhead of each file: two or three requests
	if again > 3*(chunk+3*20_000)+around {
		t.Errorf("%d bytes were sent again", again)
	}
	berth.Must("folder", "get", "-r", "page", "out")
	if d := cmp.Diff(sums(t, source), sums(t, filepath.Join(berth.Dir, "out/dropped"))); d != "" {
		t.Error(d)
	}
}
