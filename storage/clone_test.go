package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
)

// clone makes a copy of the host's folder in the second scope.
func (m *moving) clone(to *storagepb.FolderRef) (*storagepb.Progress, error) {
	m.t.Helper()
	stream, err := m.api.CloneFolder(m.ctx(), &storagepb.CloneFolderRequest{From: m.ref, To: to})
	if err != nil {
		m.t.Fatal(err)
	}
	last, _, err := follow(m.t, stream)
	return last, err
}

func (m *moving) at(ref *storagepb.FolderRef) string {
	hex := strings.ReplaceAll(ref.Folder, "-", "")
	return filepath.Join(m.scopeDir(ref.Scope), hex[:2], hex[2:4], hex[4:])
}

func (m *moving) fresh() *storagepb.FolderRef {
	return &storagepb.FolderRef{Volume: "main", Scope: m.to, Folder: uuid.NewString()}
}

func TestCloneFolder(t *testing.T) {
	m := newMoving(t)
	m.fill()
	want := tree(t, m.path)
	to := m.fresh()
	p, err := m.clone(to)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, tree(t, m.at(to))); d != "" {
		t.Error(d)
	}
	if n := int64(len(want) - 1); p.Files != n || p.Bytes < 2<<20 { // without the folder itself
		t.Errorf("last progress %v, want %d files", p, n)
	}
	if left, err := os.ReadDir(filepath.Join(m.scopeDir(m.to), ".arriving")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	// It is there: the same call changes nothing.
	if err := os.WriteFile(filepath.Join(m.at(to), "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.clone(to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.at(to), "new")); err != nil {
		t.Errorf("cloned again: %v", err)
	}
	if d := cmp.Diff(want, tree(t, m.path)); d != "" {
		t.Errorf("the source: %s", d)
	}
}

func TestCloneFolderRefusals(t *testing.T) {
	m := newMoving(t)
	for name, c := range map[string]struct {
		from, to *storagepb.FolderRef
		want     codes.Code
	}{
		"no such folder": {m.fresh(), m.fresh(), codes.NotFound},
		"no such volume": {m.ref, &storagepb.FolderRef{Volume: "x", Scope: m.to, Folder: uuid.NewString()}, codes.NotFound},
		"no such scope":  {m.ref, &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}, codes.NotFound},
		"not a uuid":     {m.ref, &storagepb.FolderRef{Volume: "main", Scope: m.to, Folder: "../x"}, codes.InvalidArgument},
		"nothing":        {nil, nil, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := m.api.CloneFolder(m.ctx(), &storagepb.CloneFolderRequest{From: c.from, To: c.to})
			if err == nil {
				_, _, err = follow(t, stream)
			}
			wantCode(t, err, c.want)
		})
	}
	// A limit that the proxy has to keep.
	m.write("big", string(random(1<<20)))
	limit := int64(100_000)
	if _, err := m.api.SetScopeLimit(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	to := m.fresh()
	_, err := m.clone(to)
	wantCode(t, err, codes.ResourceExhausted)
	limit = 4 << 20
	if _, err := m.api.SetScopeLimit(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.clone(to); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// Another volume of the same proxy takes copies, and nothing that moves.
func TestCopiesToAnotherVolume(t *testing.T) {
	h := newHost(t)
	m := &moving{host: h}
	m.fill()
	want := tree(t, m.path)
	h.stop()
	other := h.cfg.Volumes[0]
	other.Name, other.MountPath = "other", filepath.Join(memory(t), "other")
	h.cfg.Volumes = append(h.cfg.Volumes, other)
	h.start()
	defer h.stop()
	to := &storagepb.FolderRef{Volume: "other", Scope: h.ref.Scope, Folder: h.ref.Folder}
	if _, err := h.api.CreateScope(h.ctx(), &storagepb.ScopeRequest{Volume: "other", Scope: to.Scope}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.clone(to); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(h.mount, h.path)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(other.MountPath, rel)
	if d := cmp.Diff(want, tree(t, at), cmpopts.IgnoreMapEntries(func(name, _ string) bool { return name == "big" })); d != "" {
		t.Error(d)
	}
	results, err := h.transfer(false, &storagepb.TransferRequest{From: h.ref, To: to, Files: pairs("src", "again", "link", "link2")})
	if err != nil || len(results) != 2 || results[0].Error+results[1].Error != "" {
		t.Fatal(results, err)
	}
	if got := tree(t, at)["again/deep/er/run.sh"]; got != want["src/deep/er/run.sh"] {
		t.Errorf("copied %q, was %q", got, want["src/deep/er/run.sh"])
	}
	_, err = h.transfer(true, &storagepb.TransferRequest{From: h.ref, To: to, Files: pairs("src", "moved")})
	wantCode(t, err, codes.InvalidArgument)
	if d := cmp.Diff(want, tree(t, m.path)); d != "" {
		t.Errorf("the source: %s", d)
	}
}

// manyFiles is how many files a tree has that a test interrupts.
func manyFiles() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

func (h *host) fillMany(n int) {
	h.t.Helper()
	for i := range n {
		if i%500 == 0 {
			if err := os.MkdirAll(filepath.Join(h.path, fmt.Sprintf("d%03d", i/500)), 0o755); err != nil {
				h.t.Fatal(err)
			}
		}
		h.touch(fmt.Sprintf("d%03d/f%06d", i/500, i))
	}
}

func countFiles(root string) (n int) {
	_ = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

// A caller who ends a clone: it stops, nothing is at its place, and the same call
// continues. Deleting the folder takes the rest away.
func TestCloneFolderEnded(t *testing.T) {
	m := &moving{host: newHostOn(t, memory(t)), to: uuid.NewString()}
	if _, err := m.api.CreateScope(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to}); err != nil {
		t.Fatal(err)
	}
	n := manyFiles()
	m.fillMany(n)
	to := m.fresh()
	arriving := filepath.Join(m.scopeDir(m.to), ".arriving")
	interrupt := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(m.ctx())
		defer cancel()
		stream, err := m.api.CloneFolder(ctx, &storagepb.CloneFolderRequest{From: m.ref, To: to})
		if err != nil {
			t.Fatal(err)
		}
		for p, err := stream.Recv(); p.GetFiles() == 0; p, err = stream.Recv() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	interrupt()
	if _, err := os.Stat(m.at(to)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unfinished clone is at its place: %v", err)
	}
	deleteFolder(t, m.host, to)
	if left := countFiles(arriving); left > 0 {
		t.Errorf("%d files left of a clone whose folder was deleted", left)
	}
	interrupt()
	wait.Until(t, "the ended clone lets go", func() bool {
		p, err := m.clone(to)
		return err == nil && p.Files >= int64(n)
	})
	if got := countFiles(m.at(to)); got != n {
		t.Errorf("%d files, want %d", got, n)
	}
}

// Blocks are shared where the file system can do that.
func TestCloneShares(t *testing.T) {
	mount := btrfsMount(t)
	h := newHostOn(t, mount)
	m := &moving{host: h, to: uuid.NewString()}
	if _, err := m.api.CreateScope(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to}); err != nil {
		t.Fatal(err)
	}
	h.write("big", string(random(64<<20)))
	unix.Sync()
	var before, after unix.Statfs_t
	if err := unix.Statfs(mount, &before); err != nil {
		t.Fatal(err)
	}
	to := m.fresh()
	if _, err := m.clone(to); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	if err := unix.Statfs(mount, &after); err != nil {
		t.Fatal(err)
	}
	if took := (int64(before.Bfree) - int64(after.Bfree)) * before.Bsize; took > 8<<20 {
		t.Errorf("a clone of 64 MiB took %d bytes of the disk", took)
	}
	if d := cmp.Diff(tree(t, m.path), tree(t, m.at(to))); d != "" {
		t.Error(d)
	}
}
