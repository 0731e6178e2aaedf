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
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/internal/testenv/wait"
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
	p, err := storage.New(storage.Config{Name: "child", Dir: c.Dir, ObjectStorages: []string{"127.0.0.1"}, Volumes: []storage.VolumeConfig{{
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
	fmt.Println(httptest.NewServer(http.StripPrefix("/storage", p.Handler())).URL, l.Addr())
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
	url, control, _ := strings.Cut(strings.TrimSpace(line), " ")
	h.http = &httptest.Server{URL: url}
	conn, err := grpc.NewClient(control, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	h.api, h.objects = storagepb.NewStorageClient(conn), storagepb.NewObjectsClient(conn)
	return cmd
}

// kill ends a child as nothing that it could hear.
func (h *host) kill(cmd *exec.Cmd) {
	h.t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

// The proxy is killed at any moment of uploads, a hundred times: what it had
// acknowledged is there, at most one chunk has to be sent again, and every file
// comes out as it was sent.
func TestUploadsSurviveKillsAtRandom(t *testing.T) {
	h := newHost(t)
	h.stop()
	kills := 100
	if testing.Short() {
		kills = 10
	}
	const chunk = 128 << 10
	rnd := rand.New(rand.NewPCG(3, 4))
	var tk, at, name string
	var data []byte
	var acked atomic.Int64 // of the upload under way
	files, resent := 0, 0
	for killed := 0; killed < kills || files < 2 && killed < 20*kills; killed++ { // a busy machine sends little between two kills
		cmd := h.startChild()
		if at != "" {
			got := h.offset(at, tk)
			if low := acked.Load(); got < low || got > low+chunk {
				t.Fatalf("kill %d: offset %d, acknowledged were %d", killed, got, low)
			} else if got < min(low+chunk, int64(len(data))) {
				resent++
			}
			acked.Store(got)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for {
				if at != "" && acked.Load() == int64(len(data)) {
					h.wantFile(name, data)
					at, tk = "", ""
					files++
				}
				if at == "" { // also after an answer that was lost: the ticket names its upload
					if tk == "" {
						name = fmt.Sprintf("f%d", files)
						data = random(1<<20 + rnd.IntN(2<<20))
						tk = h.ticket("upload", name, int64(len(data)))
					}
					resp, err := h.try(context.Background(), "POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(len(data)))
					if err != nil || resp.StatusCode != http.StatusCreated {
						return // killed
					}
					at = "/uploads/" + filepath.Base(resp.Header.Get("Location"))
					acked.Store(0)
				}
				from := acked.Load()
				to := min(from+chunk, int64(len(data)))
				resp, err := h.try(context.Background(), "PATCH", at, tk, bytes.NewReader(data[from:to]), "Upload-Offset", strconv.FormatInt(from, 10))
				if err != nil || resp.StatusCode != http.StatusNoContent {
					return // killed
				}
				acked.Store(to)
			}
		}()
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond) // the moment is what is random
		h.kill(cmd)
		<-sent
	}
	t.Logf("%d files, %d kills, %d of them in a chunk", files, kills, resent)
	if files < 2 {
		t.Error("no upload came to its end")
	}
}

// The proxy is killed in the middle of long work on a tree. The same call again
// continues and comes to the end.
func TestTreesSurviveKill(t *testing.T) {
	m := &moving{host: newHostOn(t, memory(t)), to: uuid.NewString()}
	if _, err := m.api.CreateScope(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to}); err != nil {
		t.Fatal(err)
	}
	n := manyFiles()
	m.fillMany(n)
	to, copied := m.fresh(), m.fresh()
	if _, err := m.api.CreateFolder(m.ctx(), copied); err != nil {
		t.Fatal(err)
	}
	m.stop()
	arriving := filepath.Join(m.scopeDir(m.to), ".arriving")
	type begin func() (grpc.ServerStreamingClient[storagepb.Progress], error)
	// interrupted kills the proxy after some progress, looks, and has it finish.
	interrupted := func(what string, call begin, look func()) []*storagepb.FileResult {
		t.Helper()
		cmd := m.startChild()
		stream, err := call()
		if err != nil {
			t.Fatal(err)
		}
		for p, err := stream.Recv(); p.GetFiles() < int64(n/20); p, err = stream.Recv() {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		m.kill(cmd)
		look()
		cmd = m.startChild()
		if stream, err = call(); err != nil {
			t.Fatal(err)
		}
		_, results, err := follow(t, stream)
		if err != nil {
			t.Fatalf("%s goes on: %v", what, err)
		}
		m.kill(cmd)
		return results
	}
	before := map[uint64]bool{}
	staged := func() {
		t.Helper()
		if before = inodes(t, arriving); len(before) == 0 || len(before) >= n {
			t.Errorf("%d files were copied when the proxy was killed", len(before))
		}
	}
	arrived := func(at string) {
		t.Helper()
		after := inodes(t, at)
		kept := 0
		for ino := range before {
			if after[ino] {
				kept++
			}
		}
		// Those under way at the kill are copied again.
		if len(after) != n || kept < len(before)-16 {
			t.Errorf("%d files of %d, %d of the %d from before the kill", len(after), n, kept, len(before))
		}
		if left := countFiles(arriving); left > 0 {
			t.Errorf("%d files left behind", left)
		}
	}
	interrupted("clone", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.api.CloneFolder(m.ctx(), &storagepb.CloneFolderRequest{From: m.ref, To: to})
	}, staged)
	arrived(m.at(to))

	var names []string
	entries, err := os.ReadDir(m.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name(), e.Name())
	}
	results := interrupted("copy", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.api.CopyFiles(m.ctx(), &storagepb.TransferRequest{From: m.ref, To: copied, Files: pairs(names...)})
	}, staged)
	for _, r := range results {
		if r.Error != "" {
			t.Errorf("copy: %v", r)
		}
	}
	if len(results) != len(entries) {
		t.Errorf("%d results of %d", len(results), len(entries))
	}
	arrived(m.at(copied))

	interrupted("delete", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.api.DeleteFolder(m.ctx(), m.ref)
	}, func() {
		if left := countFiles(m.scopeDir(m.ref.Scope)); left == 0 || left == n {
			t.Errorf("%d files left when the proxy was killed", left)
		}
	})
	if left := countFiles(m.scopeDir(m.ref.Scope)); left > 0 {
		t.Errorf("%d files left", left)
	}
}

// inodes are those of the regular files below a directory.
func inodes(t *testing.T, root string) map[uint64]bool {
	t.Helper()
	out := map[uint64]bool{}
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "journal" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[info.Sys().(*syscall.Stat_t).Ino] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The proxy is killed with -9 in the middle of uploads. What it had taken is
// there afterwards, the upload continues, and no plugin process stays behind.
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
		wait.Until(t, "plugin", func() bool {
			plugin = childrenOf(t, cmd.Process.Pid)
			return len(plugin) > 0
		})
		from := h.offset(at, tk)
		body := io.MultiReader(bytes.NewReader(data[from:from+(3<<20)]), blocker{})
		go func() {
			_, _ = h.try(context.Background(), "PATCH", at, tk, body, "Upload-Offset", strconv.FormatInt(from, 10))
		}()
		wait.Until(t, "bytes on disk", func() bool {
			st, err := os.Stat(part)
			return err == nil && st.Size() > from
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		for _, pid := range plugin {
			wait.Until(t, "plugin gone with its proxy", func() bool {
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
