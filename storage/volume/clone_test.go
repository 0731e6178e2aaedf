package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func TestCloneFolder(t *testing.T) {
	m := newMoving(t)
	m.Fill()
	want := tree(t, m.Path)
	to := m.Fresh()
	p, err := m.Clone(to)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, tree(t, m.At(to))); d != "" {
		t.Error(d)
	}
	if n := int64(len(want) - 1); p.Files != n || p.Bytes < 2<<20 { // the folder itself does not count
		t.Errorf("last progress %v, want %d files", p, n)
	}
	if left, err := os.ReadDir(filepath.Join(m.ScopeDir(m.To), ".arriving")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	// The clone exists, so the same call changes nothing.
	if err := os.WriteFile(filepath.Join(m.At(to), "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Clone(to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.At(to), "new")); err != nil {
		t.Errorf("cloned again: %v", err)
	}
	if d := cmp.Diff(want, tree(t, m.Path)); d != "" {
		t.Errorf("the source: %s", d)
	}
}

func TestCloneFolderRefusals(t *testing.T) {
	m := newMoving(t)
	for name, c := range map[string]struct {
		from, to *storagepb.FolderRef
		want     codes.Code
	}{
		"no such folder": {m.Fresh(), m.Fresh(), codes.NotFound},
		"no such volume": {m.Ref, &storagepb.FolderRef{Volume: "x", Scope: m.To, Folder: uuid.NewString()}, codes.NotFound},
		"no such scope":  {m.Ref, &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}, codes.NotFound},
		"not a uuid":     {m.Ref, &storagepb.FolderRef{Volume: "main", Scope: m.To, Folder: "../x"}, codes.InvalidArgument},
		"nothing":        {nil, nil, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := m.API.CloneFolder(m.Ctx(), &storagepb.CloneFolderRequest{From: c.from, To: c.to})
			if err == nil {
				_, _, err = storagetest.Follow(t, stream)
			}
			storagetest.WantCode(t, err, c.want)
		})
	}
	// The proxy has to enforce this limit.
	m.Write("big", string(storagetest.Random(1<<20)))
	limit := int64(100_000)
	if _, err := m.API.SetScopeLimit(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	to := m.Fresh()
	_, err := m.Clone(to)
	storagetest.WantCode(t, err, codes.ResourceExhausted)
	limit = 4 << 20
	if _, err := m.API.SetScopeLimit(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Clone(to); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// Another volume of the same proxy accepts copies and refuses moves.
func TestCopiesToAnotherVolume(t *testing.T) {
	h := storagetest.New(t)
	m := &storagetest.Moving{Host: h}
	m.Fill()
	want := tree(t, m.Path)
	h.Stop()
	other := h.Config.Volumes[0]
	other.Name, other.MountPath = "other", filepath.Join(storagetest.Memory(t), "other")
	h.Config.Volumes = append(h.Config.Volumes, other)
	h.Start()
	defer h.Stop()
	to := &storagepb.FolderRef{Volume: "other", Scope: h.Ref.Scope, Folder: h.Ref.Folder}
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "other", Scope: to.Scope}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Clone(to); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(h.Mount, h.Path)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(other.MountPath, rel)
	if d := cmp.Diff(want, tree(t, at), cmpopts.IgnoreMapEntries(func(name, _ string) bool { return name == "big" })); d != "" {
		t.Error(d)
	}
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: to, Files: storagetest.Pairs("src", "again", "link", "link2")})
	if err != nil || len(results) != 2 || results[0].Error+results[1].Error != "" {
		t.Fatal(results, err)
	}
	if got := tree(t, at)["again/deep/er/run.sh"]; got != want["src/deep/er/run.sh"] {
		t.Errorf("copied %q, was %q", got, want["src/deep/er/run.sh"])
	}
	_, err = h.Transfer(true, &storagepb.TransferRequest{From: h.Ref, To: to, Files: storagetest.Pairs("src", "moved")})
	storagetest.WantCode(t, err, codes.InvalidArgument)
	if d := cmp.Diff(want, tree(t, m.Path)); d != "" {
		t.Errorf("the source: %s", d)
	}
}

// When the caller cancels a clone, it stops, its target does not exist, and the same call continues
// it. Deleting the folder removes the partial copy.
func TestCloneFolderEnded(t *testing.T) {
	m := &storagetest.Moving{Host: storagetest.NewOn(t, storagetest.Memory(t)), To: uuid.NewString()}
	if _, err := m.API.CreateScope(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To}); err != nil {
		t.Fatal(err)
	}
	n := storagetest.ManyFiles()
	m.FillMany(n)
	to := m.Fresh()
	arriving := filepath.Join(m.ScopeDir(m.To), ".arriving")
	interrupt := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(m.Ctx())
		defer cancel()
		stream, err := m.API.CloneFolder(ctx, &storagepb.CloneFolderRequest{From: m.Ref, To: to})
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
	if _, err := os.Stat(m.At(to)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unfinished clone is at its place: %v", err)
	}
	storagetest.DeleteFolder(t, m.Host, to)
	if left := storagetest.CountFiles(arriving); left > 0 {
		t.Errorf("%d files left of a clone whose folder was deleted", left)
	}
	interrupt()
	wait.Until(t, "the ended clone lets go", func() bool {
		p, err := m.Clone(to)
		return err == nil && p.Files >= int64(n)
	})
	if got := storagetest.CountFiles(m.At(to)); got != n {
		t.Errorf("%d files, want %d", got, n)
	}
}

// Blocks are shared if the file system supports that.
func TestCloneShares(t *testing.T) {
	mount := btrfsMount(t)
	h := storagetest.NewOn(t, mount)
	m := &storagetest.Moving{Host: h, To: uuid.NewString()}
	if _, err := m.API.CreateScope(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To}); err != nil {
		t.Fatal(err)
	}
	h.Write("big", string(storagetest.Random(64<<20)))
	unix.Sync()
	var before, after unix.Statfs_t
	if err := unix.Statfs(mount, &before); err != nil {
		t.Fatal(err)
	}
	to := m.Fresh()
	if _, err := m.Clone(to); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	if err := unix.Statfs(mount, &after); err != nil {
		t.Fatal(err)
	}
	if took := (int64(before.Bfree) - int64(after.Bfree)) * before.Bsize; took > 8<<20 {
		t.Errorf("a clone of 64 MiB took %d bytes of the disk", took)
	}
	if d := cmp.Diff(tree(t, m.Path), tree(t, m.At(to))); d != "" {
		t.Error(d)
	}
}
