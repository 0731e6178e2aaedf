package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// The proxy is killed a hundred times at random moments of uploads. The acknowledged bytes are
// stored, at most one chunk has to be sent again, and every file is equal to the one that was sent.
func TestUploadsSurviveKillsAtRandom(t *testing.T) {
	h := storagetest.New(t)
	h.Stop()
	kills := 100
	if testing.Short() {
		kills = 10
	}
	const chunk = 128 << 10
	rnd := rand.New(rand.NewPCG(3, 4))
	var tk, at, name string
	var data []byte
	var acked atomic.Int64 // acknowledged bytes of the current upload
	files, resent := 0, 0
	for killed := 0; killed < kills || files < 2 && killed < 20*kills; killed++ { // a busy machine sends few bytes between two kills
		cmd := h.StartChild()
		if at != "" {
			got := h.Offset(at, tk)
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
					h.WantFile(name, data)
					at, tk = "", ""
					files++
				}
				if at == "" { // also after a lost answer, because the ticket identifies its upload
					if tk == "" {
						name = fmt.Sprintf("f%d", files)
						data = storagetest.Random(1<<20 + rnd.IntN(2<<20))
						tk = h.Ticket("upload", name, int64(len(data)))
					}
					resp, err := h.Try(context.Background(), "POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(len(data)))
					if err != nil || resp.StatusCode != http.StatusCreated {
						return // the proxy was killed
					}
					at = "/uploads/" + filepath.Base(resp.Header.Get("Location"))
					acked.Store(0)
				}
				from := acked.Load()
				to := min(from+chunk, int64(len(data)))
				resp, err := h.Try(context.Background(), "PATCH", at, tk, bytes.NewReader(data[from:to]), "Upload-Offset", strconv.FormatInt(from, 10))
				if err != nil || resp.StatusCode != http.StatusNoContent {
					return // the proxy was killed
				}
				acked.Store(to)
			}
		}()
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond) // the kill comes at a random time
		h.Kill(cmd)
		<-sent
	}
	t.Logf("%d files, %d kills, %d of them in a chunk", files, kills, resent)
	if files < 2 {
		t.Error("no upload came to its end")
	}
}

// The proxy is killed in the middle of long work on a tree. When the call is repeated, it continues
// and completes.
func TestTreesSurviveKill(t *testing.T) {
	m := &storagetest.Moving{Host: storagetest.NewOn(t, storagetest.Memory(t)), To: uuid.NewString()}
	if _, err := m.API.CreateScope(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To}); err != nil {
		t.Fatal(err)
	}
	n := storagetest.ManyFiles()
	m.FillMany(n)
	to, copied := m.Fresh(), m.Fresh()
	if _, err := m.API.CreateFolder(m.Ctx(), copied); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	arriving := filepath.Join(m.ScopeDir(m.To), ".arriving")
	type begin func() (grpc.ServerStreamingClient[storagepb.Progress], error)
	// interrupted kills the proxy after some progress, inspects the tree, and lets the call
	// complete.
	interrupted := func(what string, call begin, look func()) []*storagepb.FileResult {
		t.Helper()
		cmd := m.StartChild()
		stream, err := call()
		if err != nil {
			t.Fatal(err)
		}
		for p, err := stream.Recv(); p.GetFiles() < int64(n/20); p, err = stream.Recv() {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		m.Kill(cmd)
		look()
		cmd = m.StartChild()
		if stream, err = call(); err != nil {
			t.Fatal(err)
		}
		_, results, err := storagetest.Follow(t, stream)
		if err != nil {
			t.Fatalf("%s continues: %v", what, err)
		}
		m.Kill(cmd)
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
		// Files that were being copied at the kill are copied again.
		if len(after) != n || kept < len(before)-16 {
			t.Errorf("%d files of %d, %d of the %d from before the kill", len(after), n, kept, len(before))
		}
		if left := storagetest.CountFiles(arriving); left > 0 {
			t.Errorf("%d files left behind", left)
		}
	}
	interrupted("clone", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.API.CloneFolder(m.Ctx(), &storagepb.CloneFolderRequest{From: m.Ref, To: to})
	}, staged)
	arrived(m.At(to))

	var names []string
	entries, err := os.ReadDir(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name(), e.Name())
	}
	results := interrupted("copy", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.API.CopyFiles(m.Ctx(), &storagepb.TransferRequest{From: m.Ref, To: copied, Files: storagetest.Pairs(names...)})
	}, staged)
	for _, r := range results {
		if r.Error != "" {
			t.Errorf("copy: %v", r)
		}
	}
	if len(results) != len(entries) {
		t.Errorf("%d results of %d", len(results), len(entries))
	}
	arrived(m.At(copied))

	interrupted("delete", func() (grpc.ServerStreamingClient[storagepb.Progress], error) {
		return m.API.DeleteFolder(m.Ctx(), m.Ref)
	}, func() {
		if left := storagetest.CountFiles(m.ScopeDir(m.Ref.Scope)); left == 0 || left == n {
			t.Errorf("%d files left when the proxy was killed", left)
		}
	})
	if left := storagetest.CountFiles(m.ScopeDir(m.Ref.Scope)); left > 0 {
		t.Errorf("%d files left", left)
	}
}

// inodes returns the inodes of the regular files below a directory.
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

// The proxy is killed with -9 in the middle of uploads. The bytes that it had received are still
// stored, the upload continues, and no plugin process stays behind.
func TestUploadSurvivesKill(t *testing.T) {
	h := storagetest.New(t)
	h.Stop()
	data := storagetest.Random(24 << 20)
	size := int64(len(data))
	tk := h.Ticket("upload", "big", size)
	cmd := h.StartChild()
	at := h.Begin(tk, size)
	part := filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload", filepath.Base(at)+".part")
	for range 4 {
		var plugin []int
		wait.Until(t, "plugin", func() bool {
			plugin = storagetest.ChildrenOf(t, cmd.Process.Pid)
			return len(plugin) > 0
		})
		from := h.Offset(at, tk)
		body := io.MultiReader(bytes.NewReader(data[from:from+(3<<20)]), blocker{})
		go func() {
			_, _ = h.Try(context.Background(), "PATCH", at, tk, body, "Upload-Offset", strconv.FormatInt(from, 10))
		}()
		wait.Until(t, "bytes on disk", func() bool {
			st, err := os.Stat(part)
			return err == nil && st.Size() > from
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the process was killed
		for _, pid := range plugin {
			wait.Until(t, "plugin gone with its proxy", func() bool {
				return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
			})
		}
		cmd = h.StartChild()
		if now := h.Offset(at, tk); now <= from {
			t.Errorf("offset %d after the kill, was %d before", now, from)
		}
	}
	from := h.Offset(at, tk)
	resp := h.Tus("PATCH", at, tk, bytes.NewReader(data[from:]), "Upload-Offset", strconv.FormatInt(from, 10))
	if resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	h.WantFile("big", data)
}

// blocker is a reader that blocks until the end of the test.
type blocker struct{}

func (blocker) Read([]byte) (int, error) { select {} }

func zombie(pid int) bool {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(raw), ") Z ")
}
