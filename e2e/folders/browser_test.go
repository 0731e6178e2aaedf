package folders

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/e2e/cluster"
)

// steer lets a program of another language hold up and cut a wire.
func steer(t *testing.T, w *cluster.Wire) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hold", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
		w.Hold(n)
	})
	mux.HandleFunc("POST /held", func(rw http.ResponseWriter, _ *http.Request) {
		for deadline := time.Now().Add(cluster.Patience); !w.Held(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				http.Error(rw, "nobody sends so much", http.StatusGatewayTimeout)
				return
			}
		}
	})
	mux.HandleFunc("POST /cut", func(http.ResponseWriter, *http.Request) { w.Cut() })
	mux.HandleFunc("POST /mend", func(http.ResponseWriter, *http.Request) { w.Mend() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// A thousand files are dropped into the page. The line is lost, is cut, and the page is
// loaded again, each in the middle; in the end all files are there, and nobody sent
// more than a chunk of one twice.
func TestFolderIsDroppedIntoThePage(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on this machine")
	}
	for _, needed := range []string{"/usr/bin/chromium", "../../web/node_modules/playwright-core"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("no browser: %v (run make setup web)", err)
		}
	}
	u := platform.User(t)
	berth := u.Shell()
	source := filepath.Join(berth.Dir, "dropped")
	total := fill(t, source, 1000, 40<<20)
	folder := folderOn(t, u, "disk", "page")
	before := sent()
	cmd := exec.CommandContext(t.Context(), node, "e2e/upload.mjs")
	cmd.Dir = "../../web"
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "BERTH_URL="+platform.URL, "BERTH_EMAIL="+u.Email, "BERTH_PASSWORD="+u.Password,
		"BERTH_FOLDER="+folder, "BERTH_SOURCE="+source, "BERTH_WIRE="+steer(t, platform.Wires[0]).URL)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("upload: %v", err)
	}
	again := sent() - before - total
	t.Logf("%d bytes of files, %d more were sent", total, again)
	const chunk, around = 8 << 20, 1000 * 5 << 10 // what goes around each file: two or three requests
	if again > 3*(chunk+3*20_000)+around {
		t.Errorf("%d bytes were sent again", again)
	}
	berth.Must("folder", "get", "-r", "page", "out")
	if d := cmp.Diff(sums(t, source), sums(t, filepath.Join(berth.Dir, "out/dropped"))); d != "" {
		t.Error(d)
	}
}
