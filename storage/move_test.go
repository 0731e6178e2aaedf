package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
)

// moving is a host with a second scope.
type moving struct {
	*host
	to string
}

func newMoving(t *testing.T) *moving {
	m := &moving{host: newHost(t), to: uuid.NewString()}
	if _, err := m.api.CreateScope(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.to}); err != nil {
		t.Fatal(err)
	}
	return m
}

// scopeDir is where a scope lies on disk.
func (m *moving) scopeDir(scope string) string {
	return filepath.Join(m.mount, strings.ReplaceAll(scope, "-", ""))
}

// apart puts the second scope on a file system of its own, so that nothing can
// be renamed to there.
func (m *moving) apart(options string) {
	m.t.Helper()
	at := m.scopeDir(m.to)
	err := unix.Mount("tmpfs", at, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) {
		m.t.Skip("may not mount")
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

func (m *moving) move() (*storagepb.Folder, error) {
	return m.api.MoveFolder(m.ctx(), &storagepb.MoveFolderRequest{Folder: m.ref, ToScope: m.to})
}

// fill makes one of everything that people keep.
func (m *moving) fill() {
	m.t.Helper()
	ok := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(m.path, name) }
	ok(os.MkdirAll(at("src/deep/er"), 0o755))
	ok(os.WriteFile(at("src/main.py"), []byte("print(1)\n"), 0o640))
	ok(os.WriteFile(at("src/deep/er/run.sh"), []byte("#!/bin/sh\n"), 0o755))
	ok(os.WriteFile(at("big"), bytes.Repeat([]byte("0123456789abcdef"), 128<<10), 0o644)) // 2 MiB
	ok(os.WriteFile(at("empty"), nil, 0o600))
	ok(os.WriteFile(at("na\xffme"), []byte("no UTF-8"), 0o644))
	ok(os.Link(at("src/main.py"), at("again.py")))
	ok(os.Symlink("src/main.py", at("link")))
	ok(os.Symlink("/etc/passwd", at("outside")))
	ok(unix.Mkfifo(at("pipe"), 0o620))
	ok(os.Mkdir(at("sealed"), 0o700))
	ok(os.WriteFile(at("sealed/x"), []byte("x"), 0o400))
	ok(os.Chmod(at("sealed"), 0o500))
	sparse, err := os.Create(at("sparse"))
	ok(err)
	_, err = sparse.WriteAt([]byte("end"), 64<<20)
	ok(errors.Join(err, sparse.Close()))
	ok(os.Chtimes(at("src/main.py"), time.Unix(1e9, 0), time.Unix(1e9, 123456789)))
	ok(os.Chtimes(at("src"), time.Unix(1e9, 0), time.Unix(1.1e9, 0)))
	if err := unix.Setxattr(at("big"), "user.origin", []byte("here"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		m.t.Fatal(err)
	}
}

// tree describes what is below a directory, a line for each.
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
			m.fill()
			if apart {
				m.apart("size=32m")
			}
			want := tree(t, m.path)
			if len(want) < 15 || !strings.Contains(want["sparse"], "sparse") {
				t.Fatalf("the tree to move is %v", want)
			}
			for range 2 { // what has arrived is done
				f, err := m.move()
				if err != nil {
					t.Fatal(err)
				}
				if at := filepath.Join(m.mount, f.Path); !strings.HasPrefix(at, m.scopeDir(m.to)+"/") {
					t.Fatalf("it is at %s", at)
				} else if d := cmp.Diff(want, tree(t, at)); d != "" {
					t.Error(d)
				}
			}
			if _, err := os.Lstat(m.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old place: %v", err)
			}
			_, err := m.api.GetFolder(m.ctx(), m.ref)
			wantCode(t, err, codes.NotFound)
			if _, err := m.api.DeleteScope(m.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.ref.Scope}); err != nil {
				t.Errorf("something was left in the old scope: %v", err)
			}
			m.ref.Scope = m.to
			deleteFolder(t, m.host, m.ref)
		})
	}
}

// A copy that ran out of space leaves the folder where it was, and continues when
// there is more.
func TestMoveFolderGoesOn(t *testing.T) {
	m := newMoving(t)
	m.fill()
	m.apart("size=1m")
	want := tree(t, m.path)
	_, err := m.move()
	wantCode(t, err, codes.ResourceExhausted)
	if d := cmp.Diff(want, tree(t, m.path)); d != "" {
		t.Fatalf("a failed move changed the folder: %s", d)
	}
	_, err = m.api.GetFolder(m.ctx(), &storagepb.FolderRef{Volume: "main", Scope: m.to, Folder: m.ref.Folder})
	wantCode(t, err, codes.NotFound)
	if err := unix.Mount("tmpfs", m.scopeDir(m.to), "tmpfs", unix.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	f, err := m.move()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, tree(t, filepath.Join(m.mount, f.Path))); d != "" {
		t.Error(d)
	}
}

// A crash between the arrival of a copy and the removal of what was copied
// leaves both: the next call removes the rest and nothing else.
func TestMoveFolderRemovesWhatACrashLeft(t *testing.T) {
	m := newMoving(t)
	m.fill()
	m.apart("size=32m")
	f, err := m.move()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(m.mount, f.Path)
	want := tree(t, at)
	if err := os.MkdirAll(filepath.Join(m.path, "rest"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := m.move(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(m.path); !errors.Is(err, fs.ErrNotExist) {
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
		"no such folder": {&storagepb.FolderRef{Volume: "main", Scope: m.ref.Scope, Folder: uuid.NewString()}, m.to, codes.NotFound},
		"no such volume": {&storagepb.FolderRef{Volume: "other", Scope: m.ref.Scope, Folder: m.ref.Folder}, m.to, codes.NotFound},
		"no such scope":  {m.ref, uuid.NewString(), codes.NotFound},
		"not a scope":    {m.ref, "../x", codes.InvalidArgument},
		"nothing":        {nil, "", codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.api.MoveFolder(m.ctx(), &storagepb.MoveFolderRequest{Folder: c.ref, ToScope: c.to})
			wantCode(t, err, c.want)
		})
	}
	if _, err := os.Stat(m.path); err != nil {
		t.Errorf("the folder: %v", err)
	}
}
