package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/foldergroup"
	"github.com/berthhq/berth/storage/storagetest"
)

// New files in a folder belong to the group of folders, which can change them regardless of the
// umask of their creator. A replaced file keeps its owner.
func TestFilesBelongToTheGroupOfFolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	h := storagetest.New(t)
	upload := func(content string) {
		t.Helper()
		tk := h.Ticket("upload", "new/file", int64(len(content)))
		at := h.Begin(tk, int64(len(content)))
		if resp := h.Tus("PATCH", at, tk, strings.NewReader(content), "Upload-Offset", "0"); resp.StatusCode != 204 {
			t.Fatalf("PATCH: %s", resp.Status)
		}
	}
	is := func(path string, mode os.FileMode, uid, gid uint32) {
		t.Helper()
		st, err := os.Stat(filepath.Join(h.Path, path))
		if err != nil {
			t.Fatal(err)
		}
		if sys := st.Sys().(*syscall.Stat_t); st.Mode() != mode || sys.Uid != uid || sys.Gid != gid {
			t.Errorf("%q is %v of %d:%d, want %v of %d:%d", path, st.Mode(), sys.Uid, sys.Gid, mode, uid, gid)
		}
	}
	upload("first")
	const dir = os.ModeDir | os.ModeSetgid | foldergroup.Dir
	is("", dir, 0, foldergroup.ID)
	is("new", dir, 0, foldergroup.ID)
	is("new/file", foldergroup.File, 0, foldergroup.ID)

	at := filepath.Join(h.Path, "new", "file")
	if err := os.Chown(at, 4321, 5432); err != nil {
		t.Fatal(err)
	}
	upload("the second")
	is("new/file", foldergroup.File, 4321, 5432)

	if _, err := unix.Getxattr(h.Path, "system.posix_acl_default", nil); errors.Is(err, unix.ENOTSUP) {
		t.Skip("this file system does not support access lists")
	}
	// The files are created as by a container, in a directory that the proxy created.
	if err := errors.Join(os.Mkdir(filepath.Join(h.Path, "new", "sub"), 0o777), os.WriteFile(filepath.Join(h.Path, "new", "sub", "own"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	is("new/sub", dir, 0, foldergroup.ID)
	is("new/sub/own", foldergroup.File, 0, foldergroup.ID)
}
