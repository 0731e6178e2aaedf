package storage_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
)

// The test program started with this variable is a proxy on a free port: the
// JSON of its configuration, and the ticket key.
const childEnv = "STORAGE_TEST_PROXY"

type childConfig struct {
	Dir, Mount, VFS, Key string
}

// child is what such a process runs, until it is killed.
func child(text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	key, err := hex.DecodeString(c.Key)
	if err != nil {
		return err
	}
	p, err := storage.New(storage.Config{Name: "child", Dir: c.Dir, Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: c.VFS, MountPath: c.Mount, Create: true,
	}}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = p.GRPC().Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	watch, err := storagepb.NewStorageClient(conn).Watch(context.Background(), &storagepb.WatchRequest{TicketKeys: [][]byte{key}})
	if err != nil {
		return err
	}
	if _, err := watch.Recv(); err != nil { // the key is known now
		return err
	}
	fmt.Println(httptest.NewServer(http.StripPrefix("/storage", p.Handler())).URL)
	return p.Run(context.Background())
}

// startChild starts a proxy as a process of its own and points the host at it.
func (h *host) startChild() *exec.Cmd {
	h.t.Helper()
	config, err := json.Marshal(childConfig{Dir: h.cfg.Dir, Mount: h.mount, VFS: vfs, Key: hex.EncodeToString(h.signer.PublicKey())})
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatalf("child: %v", err)
	}
	h.http = &httptest.Server{URL: strings.TrimSpace(line)}
	return cmd
}

// The proxy is killed with -9 in the middle of uploads. What it had taken is
// there afterwards, the upload goes on, and no plugin process stays behind.
func TestUploadSurvivesKill(t *testing.T) {
	h := newHost(t)
	h.stop()
	data := random(24 << 20)
	size := int64(len(data))
	tk := h.ticket("upload", "big", size)
	cmd := h.startChild()
	at := h.begin(tk, size)
	part := filepath.Join(h.mount, strings.ReplaceAll(h.ref.Scope, "-", ""), ".upload", filepath.Base(at)+".part")
	for range 4 {
		var plugin []int
		eventually(t, 10*time.Second, "plugin", func() bool {
			plugin = childrenOf(t, cmd.Process.Pid)
			return len(plugin) > 0
		})
		from := h.offset(at, tk)
		body := io.MultiReader(bytes.NewReader(data[from:from+(3<<20)]), blocker{})
		go func() {
			_, _ = h.try(context.Background(), "PATCH", at, tk, body, "Upload-Offset", strconv.FormatInt(from, 10))
		}()
		eventually(t, 10*time.Second, "bytes on disk", func() bool {
			st, err := os.Stat(part)
			return err == nil && st.Size() > from
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		for _, pid := range plugin {
			eventually(t, 5*time.Second, "plugin gone with its proxy", func() bool {
				return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
			})
		}
		cmd = h.startChild()
		if now := h.offset(at, tk); now <= from {
			t.Errorf("offset %d after the kill, was %d before", now, from)
		}
	}
	from := h.offset(at, tk)
	resp := h.tus("PATCH", at, tk, bytes.NewReader(data[from:]), "Upload-Offset", strconv.FormatInt(from, 10))
	if resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.wantFile("big", data)
}

// blocker never ends.
type blocker struct{}

func (blocker) Read([]byte) (int, error) { select {} }

func childrenOf(t *testing.T, pid int) (out []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, child := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

func zombie(pid int) bool {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(raw), ") Z ")
}
