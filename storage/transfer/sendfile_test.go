package transfer_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagetest"
)

// The kernel copies the bytes of a download from the file to the socket: strace shows sendfile(2)
// for them, and almost no write(2).
func TestDownloadsUseSendfile(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	h := storagetest.New(t)
	const size = 32 << 20
	h.Write("f", string(storagetest.Random(size)))
	h.Stop()
	cmd := h.StartChild()
	defer h.Kill(cmd)
	out := filepath.Join(t.TempDir(), "calls")
	trace := exec.Command(strace, "-f", "-qq", "-e", "trace=sendfile,write,writev,splice", "-o", out, "-p", strconv.Itoa(cmd.Process.Pid))
	trace.Stderr = os.Stderr
	if err := trace.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = trace.Process.Kill() // strace waits for sleeping threads if it gets a SIGTERM
		_ = trace.Wait()
	}()
	tk := h.Ticket("download", "f", 0)
	var calls string
	moved := map[string]int64{}
	// strace shows nothing before it is attached, so the test downloads until strace shows a
	// download.
	wait.Until(t, "strace attached", func() bool {
		resp := h.Get("/download?ticket=" + tk)
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != size {
			t.Fatal(n, err)
		}
		resp.Body.Close()
		raw, _ := os.ReadFile(out)
		calls = string(raw)
		moved = movedBytes(calls)
		return moved["sendfile"]+moved["write"]+moved["writev"]+moved["splice"] >= size
	})
	if moved["sendfile"] < size*9/10 || moved["write"]+moved["writev"] > size/10 {
		t.Errorf("bytes by call: %v\n%s", moved, calls[:min(len(calls), 4000)])
	}
}

// A download over WebDAV is also sent from the file by the kernel.
func TestWebDAVUsesSendfile(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	const size = 4<<20 + 1
	data := storagetest.Random(size)
	h.Write("f", string(data))
	for _, c := range []struct {
		headers []string
		want    []byte
	}{{nil, data}, {[]string{"Range", "bytes=5-2097155"}, data[5:2097156]}} {
		server := httptest.NewUnstartedServer(http.StripPrefix("/storage", h.Proxy.Handler()))
		handed := testenv.Handed(server)
		server.Start()
		h.HTTP.URL = server.URL
		resp, got := h.WebDAV("GET", "/mine/data/f", "rw", "", c.headers...)
		if resp.StatusCode >= 300 || got != string(c.want) {
			t.Errorf("%v: %s, %d bytes", c.headers, resp.Status, len(got))
		}
		server.Close() // waits for the handler
		if n := handed.Load(); n < int64(len(c.want)*9/10) {
			t.Errorf("%v: the connection was handed %d of %d bytes as a file", c.headers, n, len(c.want))
		}
	}
}

var returned = regexp.MustCompile(`(?:\d+\s+)?(?:<\.\.\. )?(sendfile|writev|write|splice)\b.*= (\d+)$`)

func movedBytes(calls string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.SplitSeq(calls, "\n") {
		if m := returned.FindStringSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(m[2], 10, 64)
			out[m[1]] += n
		}
	}
	return out
}
