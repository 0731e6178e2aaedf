package volume_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func newMoving(t *testing.T) *storagetest.Moving {
	m := &storagetest.Moving{Host: storagetest.New(t), To: uuid.NewString()}
	if _, err := m.API.CreateScope(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To}); err != nil {
		t.Fatal(err)
	}
	return m
}

// tree describes the files below a directory, one line for each.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		line := fmt.Sprintf("%o %d:%d %d.%d", st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d names, %d bytes %x", st.Nlink, len(text), crc32.ChecksumIEEE(text))
			if st.Blocks*512 < st.Size/2 {
				line += " sparse"
			}
			value := make([]byte, 64)
			if n, err := unix.Lgetxattr(path, "user.origin", value); err == nil {
				line += " from " + string(value[:n])
			}
		case unix.S_IFLNK:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + to
		}
		out[rel] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMoveFolder(t *testing.T) {
	for name, apart := range map[string]bool{"renamed": false, "copied": true} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t)
			m.Fill()
			if apart {
				m.Apart("size=32m")
			}
			want := tree(t, m.Path)
			if len(want) < 15 || !strings.Contains(want["sparse"], "sparse") {
				t.Fatalf("the tree to move is %v", want)
			}
			for range 2 { // a folder that has arrived needs no more work
				f, err := m.Move()
				if err != nil {
					t.Fatal(err)
				}
				if at := filepath.Join(m.Mount, f.Path); !strings.HasPrefix(at, m.ScopeDir(m.To)+"/") {
					t.Fatalf("it is at %s", at)
				} else if d := cmp.Diff(want, tree(t, at)); d != "" {
					t.Error(d)
				}
			}
			if _, err := os.Lstat(m.Path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old place: %v", err)
			}
			_, err := m.API.GetFolder(m.Ctx(), m.Ref)
			storagetest.WantCode(t, err, codes.NotFound)
			if _, err := m.API.DeleteScope(m.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.Ref.Scope}); err != nil {
				t.Errorf("something was left in the old scope: %v", err)
			}
			m.Ref.Scope = m.To
			storagetest.DeleteFolder(t, m.Host, m.Ref)
		})
	}
}

// A copy that ran out of space leaves the folder where it was, and continues when there is space.
func TestMoveFolderGoesOn(t *testing.T) {
	m := newMoving(t)
	m.Fill()
	m.Apart("size=1m")
	want := tree(t, m.Path)
	_, err := m.Move()
	storagetest.WantCode(t, err, codes.ResourceExhausted)
	if d := cmp.Diff(want, tree(t, m.Path)); d != "" {
		t.Fatalf("a failed move changed the folder: %s", d)
	}
	_, err = m.API.GetFolder(m.Ctx(), &storagepb.FolderRef{Volume: "main", Scope: m.To, Folder: m.Ref.Folder})
	storagetest.WantCode(t, err, codes.NotFound)
	if err := unix.Mount("tmpfs", m.ScopeDir(m.To), "tmpfs", unix.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	f, err := m.Move()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, tree(t, filepath.Join(m.Mount, f.Path))); d != "" {
		t.Error(d)
	}
}

// A crash between the arrival of a copy and the removal of the original leaves both. The next call
// removes the original and nothing else.
func TestMoveFolderRemovesWhatACrashLeft(t *testing.T) {
	m := newMoving(t)
	m.Fill()
	m.Apart("size=32m")
	f, err := m.Move()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(m.Mount, f.Path)
	want := tree(t, at)
	if err := os.MkdirAll(filepath.Join(m.Path, "rest"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Move(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(m.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old place: %v", err)
	}
	if d := cmp.Diff(want, tree(t, at)); d != "" {
		t.Error(d)
	}
}

func TestMoveFolderRefusals(t *testing.T) {
	m := newMoving(t)
	for name, c := range map[string]struct {
		ref  *storagepb.FolderRef
		to   string
		want codes.Code
	}{
		"no such folder": {&storagepb.FolderRef{Volume: "main", Scope: m.Ref.Scope, Folder: uuid.NewString()}, m.To, codes.NotFound},
		"no such volume": {&storagepb.FolderRef{Volume: "other", Scope: m.Ref.Scope, Folder: m.Ref.Folder}, m.To, codes.NotFound},
		"no such scope":  {m.Ref, uuid.NewString(), codes.NotFound},
		"not a scope":    {m.Ref, "../x", codes.InvalidArgument},
		"nothing":        {nil, "", codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.API.MoveFolder(m.Ctx(), &storagepb.MoveFolderRequest{Folder: c.ref, ToScope: c.to})
			storagetest.WantCode(t, err, c.want)
		})
	}
	if _, err := os.Stat(m.Path); err != nil {
		t.Errorf("the folder: %v", err)
	}
}
