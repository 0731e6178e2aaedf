package view_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// files creates some files to send, and returns their directory.
func files(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	for name, content := range map[string]string{"a.bin": string(storagetest.Random(3 << 20)), "ä ö#?%.txt": "names", "dir/empty": "", "dir/run": "#!/bin/sh\n"} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "dir/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func same(t *testing.T, a, b string) {
	t.Helper()
	run(t, "diff", "-r", a, b)
}

func TestOpenSSH(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	src := files(t)
	back := t.TempDir()
	out, err := storagetest.OpenSSH(t, address, "rw", "put -r "+src+" mine/data/up", "ls -l mine/data/up/dir", "get -r mine/data/up "+back+"/up", "df mine/data")
	if err != nil {
		t.Fatal(err)
	}
	same(t, src, filepath.Join(h.Path, "up"))
	same(t, src, filepath.Join(back, "up"))
	if !strings.Contains(out, "-rwxrwxr-x") {
		t.Errorf("an executable lost its mode: %s", out)
	}
	out, err = storagetest.OpenSSH(t, address, "rw",
		"rename mine/data/up/a.bin mine/data/up/dir/empty", "chmod 600 mine/data/up/dir/run", "mkdir mine/data/new", "rmdir mine/data/new",
		"rm mine/data/up/*.txt", "rm mine/data/up/dir", "rmdir mine/data/up/dir", "ln mine/data/up mine/data/link", "symlink /etc mine/data/link",
		"mkdir mine/other", "rm mine/data/none")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(h.Path, "up/dir/empty")); err != nil || st.Size() != 3<<20 {
		t.Errorf("rename: %v %v", st, err)
	}
	if st, err := os.Stat(filepath.Join(h.Path, "up/dir/run")); err != nil || st.Mode() != 0o600 {
		t.Errorf("chmod: %v %v", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.Path, "up/*")); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	if n := strings.Count(out, "Operation unsupported"); n != 2 {
		t.Errorf("%d links were refused: %s", n, out)
	}
}

// A partial upload is resumed, and a file that was not closed stays unchanged.
func TestResume(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	whole := storagetest.Random(2 << 20)
	source := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(source, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	h.Write("f", string(whole[:1<<20]))
	if _, err := storagetest.OpenSSH(t, address, "rw", "reput "+source+" mine/data/f"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(h.Path, "f")); !bytes.Equal(got, whole) {
		t.Errorf("reput: %d bytes, %v", len(got), err)
	}
	c, err := storagetest.DialSFTP(t, address, "rw")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.OpenFile("/mine/data/f", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stat("/mine/data/f"); err != nil || st.Size() != 4 {
		t.Errorf("the writer sees %v %v", st, err)
	}
	f, err = s.OpenFile("/mine/data/f", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("over the beginning")); err == nil {
		t.Error("an appending client overwrote the file")
	}
	c.Close()
	wait.Until(t, "nothing is left of incomplete files", func() bool { return len(h.Staged()) == 0 })
	if got, err := os.ReadFile(filepath.Join(h.Path, "f")); !bytes.Equal(got, whole) {
		t.Errorf("after the cut: %d bytes, %v", len(got), err)
	}
}

// The user who sent a partial file can resume it, and other users do not see it. The file appears
// only when it is complete.
func TestHalfIsFoundAgain(t *testing.T) {
	t.Parallel()
	h, o, address := storagetest.NewSFTP(t)
	other := uuid.New()
	o.Set("other", &storagepb.ListResponse{User: other[:], Folders: []*storagepb.OpenFolder{
		{Folder: h.Ref, Path: []string{"mine", "data"}, Read: true, Write: true},
	}})
	whole := storagetest.Random(3 << 20)
	source := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(source, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	// cut sends the beginning of the file and, after a gap, another part, and then cuts the
	// connection.
	cut := func(flags int, from, to int) {
		t.Helper()
		c, err := storagetest.DialSFTP(t, address, "rw")
		if err != nil {
			t.Fatal(err)
		}
		f, err := storagetest.Must(sftp.NewClient(c)).OpenFile("/mine/data/f", os.O_WRONLY|flags)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{to + 100<<10, from} {
			end := to
			if at > to {
				end = at + 1000
			}
			if _, err := f.WriteAt(whole[at:end], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	size := func(c *sftp.Client, want int64) func() bool {
		return func() bool {
			st, err := c.Stat("/mine/data/f")
			if want < 0 {
				return os.IsNotExist(err)
			}
			return err == nil && st.Size() == want
		}
	}
	me, notMe, reader := storagetest.SFTPClient(t, address, "rw"), storagetest.SFTPClient(t, address, "other"), storagetest.SFTPClient(t, address, "ro")
	const fresh = os.O_CREATE | os.O_TRUNC
	cut(fresh, 0, 1<<20)
	wait.Until(t, "the half is there for its user", size(me, 1<<20))
	if !size(notMe, -1)() {
		t.Error("somebody else sees it")
	}
	if _, err := reader.Stat("/shared/a@b/data/f"); !os.IsNotExist(err) {
		t.Errorf("a reader sees it: %v", err)
	}
	if list, err := me.ReadDir("/mine/data"); err != nil || len(list) != 0 {
		t.Errorf("list: %v %v", list, err)
	}
	if _, err := me.Open("/mine/data/f"); !os.IsNotExist(err) {
		t.Errorf("it is read: %v", err)
	}
	if resp, _ := h.WebDAV("GET", "/mine/data/f", "rw", ""); resp.StatusCode != 404 {
		t.Errorf("WebDAV has it: %s", resp.Status)
	}
	touch, err := me.OpenFile("/mine/data/f", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := touch.WriteAt([]byte("x"), 0); err == nil {
		t.Error("its beginning is written over")
	}
	if err := touch.Close(); err != nil {
		t.Error(err)
	}
	gone := func() bool { _, err := os.Stat(filepath.Join(h.Path, "f")); return os.IsNotExist(err) }
	if !gone() || !size(me, 1<<20)() {
		t.Error("opening it without a write changed it")
	}

	cut(os.O_APPEND, 1<<20, 2<<20) // another attempt
	wait.Until(t, "more of it is there", size(me, 2<<20))
	if !gone() {
		t.Error("a half is the file")
	}
	h.Stop() // the partial upload survives the proxy
	o.Mu.Lock()
	for _, d := range o.Told {
		if i := slices.IndexFunc(d.Operations, func(x *storagepb.FileOperation) bool { return x.Kind == storagepb.FileOperation_WROTE }); i >= 0 {
			t.Errorf("the trail has a file that is not there: %v", d.Operations[i])
		}
	}
	o.Mu.Unlock()
	h.Config.SFTP = storagetest.Must(net.Listen("tcp", "127.0.0.1:0"))
	address = h.Config.SFTP.Addr().String()
	h.Start()
	if _, err := storagetest.OpenSSH(t, address, "rw", "reput "+source+" mine/data/f"); err != nil {
		t.Fatal(err)
	}
	h.WantFile("f", whole)
	if left := h.Staged(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}

	me, notMe = storagetest.SFTPClient(t, address, "rw"), storagetest.SFTPClient(t, address, "other")
	if err := me.Remove("/mine/data/f"); err != nil || !size(me, -1)() {
		t.Errorf("a removed file exists: %v", err)
	}
	cut(fresh, 0, 1<<20)
	wait.Until(t, "the next half is there", size(me, 1<<20))
	if err := notMe.Remove("/mine/data/f"); !os.IsNotExist(err) {
		t.Errorf("somebody else removes it: %v", err)
	}
	if err := me.Remove("/mine/data/f"); err != nil || len(h.Staged()) != 0 {
		t.Errorf("remove: %v, left: %q", err, h.Staged())
	}

	cut(fresh, 0, 1<<20)
	wait.Until(t, "the third half is there", size(me, 1<<20))
	if err := me.Truncate("/mine/data/f", 0); err != nil || !size(me, 0)() { // as sshfs does before it rewrites a file
		t.Errorf("truncate: %v", err)
	}
	again, err := me.OpenFile("/mine/data/f", os.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Write([]byte("new")); err != nil || again.Close() != nil {
		t.Errorf("write: %v", err)
	}
	h.WantFile("f", []byte("new"))

	if err := me.Remove("/mine/data/f"); err != nil {
		t.Error(err)
	}
	cut(fresh, 0, 1<<20)
	wait.Until(t, "the fourth half is there", size(me, 1<<20))
	if _, err := storagetest.OpenSSH(t, address, "rw", "put "+source+" mine/data/f"); err != nil { // from the beginning
		t.Fatal(err)
	}
	h.WantFile("f", whole)
	if left := h.Staged(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}

	if err := me.Remove("/mine/data/f"); err != nil {
		t.Error(err)
	}
	cut(fresh, 0, 1<<20)
	wait.Until(t, "the fifth half is there", size(me, 1<<20))
	h.Stop()
	ago := time.Now().Add(-25 * time.Hour)
	for _, name := range h.Staged() {
		if err := os.Chtimes(filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload", name), ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	h.Config.SFTP = storagetest.Must(net.Listen("tcp", "127.0.0.1:0"))
	h.Start()
	wait.Until(t, "it is swept after a day", func() bool { return len(h.Staged()) == 0 })
}

func TestSFTPTree(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	h.Write("a/b.txt", "hello")
	if err := unix.Mkfifo(filepath.Join(h.Path, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"out": "/etc", "link": "a/b.txt", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(h.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	rw, ro := storagetest.SFTPClient(t, address, "rw"), storagetest.SFTPClient(t, address, "ro")
	put := func(c *sftp.Client, name string, flags int) error {
		f, err := c.OpenFile(name, os.O_WRONLY|flags)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte("x"))
		return firstError(err, f.Close())
	}
	begin := func(name string, flags int) error {
		f, err := rw.OpenFile(name, os.O_WRONLY|flags)
		if err == nil {
			f.Close() // the close can fail as well
		}
		return err
	}
	get := func(c *sftp.Client, name string) error {
		f, err := c.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		raw, err := io.ReadAll(f)
		if strings.Contains(string(raw), "root:") {
			t.Errorf("%s: escaped", name)
		}
		return err
	}
	const fresh = os.O_CREATE | os.O_TRUNC
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"read", get(rw, "/mine/data/a/b.txt"), "ok"},
		{"read a shared folder", get(ro, "/shared/a@b/data/a/b.txt"), "ok"},
		{"read a link", get(rw, "/mine/data/link"), "failure"},
		{"read through a link that leads out", get(rw, "/mine/data/out/passwd"), "failure"},
		{"read through a link to a parent", get(rw, "/mine/data/up/x"), "failure"},
		{"read with ..", get(rw, "/mine/data/../../../etc/passwd"), "absent"},
		{"read a FIFO", get(rw, "/mine/data/fifo"), "failure"},
		{"write to a FIFO", put(rw, "/mine/data/fifo", 0), "absent"},
		{"write through a link that leads out", put(rw, "/mine/data/out/new", fresh), "failure"},
		{"write through a link", put(rw, "/mine/data/link", 0), "absent"},
		{"write to a name with control characters", put(rw, "/mine/data/a\nb", fresh), "failure"},
		{"write in a missing directory", put(rw, "/mine/data/no/new", fresh), "absent"},
		{"write to an empty path", put(rw, "/mine/data/new", 0), "absent"},
		{"write to a directory", put(rw, "/mine/data/a", fresh), "failure"},
		{"write outside of folders", put(rw, "/mine/new", fresh), "absent"},
		{"open a directory", begin("/mine/data/a", fresh), "failure"},
		{"open an existing file exclusively", begin("/mine/data/a/b.txt", fresh|os.O_EXCL), "failure"},
		{"create a file exclusively", put(rw, "/mine/data/a/b.txt", fresh|os.O_EXCL), "failure"},
		{"write to a read-only folder", put(ro, "/shared/a@b/data/new", fresh), "denied"},
		{"change a file in a read-only folder", put(ro, "/shared/a@b/data/a/b.txt", 0), "denied"},
		{"make a directory there", ro.Mkdir("/shared/a@b/data/d"), "denied"},
		{"delete there", ro.Remove("/shared/a@b/data/a/b.txt"), "denied"},
		{"rename there", ro.Rename("/shared/a@b/data/a", "/shared/a@b/data/c"), "denied"},
		{"chmod there", ro.Chmod("/shared/a@b/data/a", 0o700), "denied"},
		{"truncate there", ro.Truncate("/shared/a@b/data/a/b.txt", 0), "denied"},
		{"the name of another user", get(ro, "/mine/data/a/b.txt"), "absent"},
		{"make a folder", rw.Mkdir("/mine/more"), "absent"},
		{"delete a folder", rw.RemoveDirectory("/mine/data"), "denied"},
		{"rename a folder", rw.Rename("/mine/data", "/mine/other"), "absent"},
		{"make", put(rw, "/mine/data/new", fresh|os.O_EXCL), "ok"},
		{"rename onto something", rw.Rename("/mine/data/new", "/mine/data/a/b.txt"), "failure"},
		{"rename over something", rw.PosixRename("/mine/data/new", "/mine/data/a/b.txt"), "ok"},
		{"change the owner", rw.Chown("/mine/data/a/b.txt", 1, 1), "denied"},
		{"chmod", rw.Chmod("/mine/data/a/b.txt", 0o4711), "ok"},
		{"chmod of a link", rw.Chmod("/mine/data/link", 0o777), "failure"},
		{"chmod of a FIFO", rw.Chmod("/mine/data/fifo", 0o777), "failure"},
		{"truncate", rw.Truncate("/mine/data/a/b.txt", 100), "ok"},
		{"date", rw.Chtimes("/mine/data/a/b.txt", time.Unix(5, 0), time.Unix(1e9, 0)), "ok"},
		{"make a link", rw.Symlink("/etc", "/mine/data/more"), "failure"},
		{"make a hard link", rw.Link("/mine/data/a/b.txt", "/mine/data/more"), "failure"},
	} {
		if got := storagetest.ErrorClass(c.err); got != c.want {
			t.Errorf("%s: %v (%s), want %s", c.name, c.err, got, c.want)
		}
	}
	st, err := os.Stat(filepath.Join(h.Path, "a/b.txt"))
	if err != nil || st.Mode() != 0o711 || st.Size() != 100 || st.ModTime().Unix() != 1e9 {
		t.Errorf("attributes: %v %v", st, err)
	}
	list, err := rw.ReadDir("/mine/data")
	if err != nil || len(list) != 1 || list[0].Name() != "a" {
		t.Errorf("list: %v %v", list, err)
	}
	if list, err = ro.ReadDir("/"); err != nil || len(list) != 1 || list[0].Name() != "shared" {
		t.Errorf("root: %v %v", list, err)
	}
	if st, err := ro.Stat("/shared/a@b/data/a"); err != nil || st.Mode().Perm() != 0o555 {
		t.Errorf("a read-only file is shown as %v %v", st, err)
	}
}

// A file that must be new does not replace a file that was created meanwhile. A file that replaces
// another one keeps its mode.
func TestSFTPNewAlone(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	f, err := storagetest.SFTPClient(t, address, "rw").OpenFile("/mine/data/f", os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("second")); err != nil {
		t.Fatal(err)
	}
	h.Write("f", "first")
	if err := f.Close(); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("close: %v", err)
	}
	if raw, err := os.ReadFile(filepath.Join(h.Path, "f")); string(raw) != "first" {
		t.Errorf("is now %q, %v", raw, err)
	}
	if err := os.Chmod(filepath.Join(h.Path, "f"), 0o750); err != nil {
		t.Fatal(err)
	}
	again, err := storagetest.SFTPClient(t, address, "rw").Create("/mine/data/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Write([]byte("third")); err != nil || again.Close() != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(h.Path, "f")); err != nil || st.Mode() != 0o750 || st.Size() != 5 {
		t.Errorf("after it was replaced: %v %v", st, err)
	}
}

// Attributes that are set while a file is written apply to the published file.
func TestSFTPSetWhileWriting(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	c := storagetest.SFTPClient(t, address, "rw")
	f, err := c.Create("/mine/data/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("12345")); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1e9, 0)
	if err := firstError(f.Chmod(0o700), c.Chtimes("/mine/data/f", when, when), f.Truncate(2)); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(h.Path, "f")); err != nil || st.Mode() != 0o700 || !st.ModTime().Equal(when) || st.Size() != 2 {
		t.Errorf("%v %v", st, err)
	}
}

// A channel can have 256 open files and directories at a time, regardless of how many it opened
// before.
func TestSFTPOpenFiles(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	h.Write("f", "f")
	c := storagetest.SFTPClient(t, address, "rw")
	read := func() (*sftp.File, error) { return c.Open("/mine/data/f") }
	for range 260 {
		r, err := read()
		if err != nil || r.Close() != nil {
			t.Fatal(err)
		}
		w, err := c.OpenFile("/mine/data/f", os.O_WRONLY)
		if err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadDir("/mine/data"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open("/mine/data/none"); !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	var first *sftp.File
	for i := range 256 {
		f, err := read()
		if err != nil {
			t.Fatalf("file %d: %v", i+1, err)
		}
		if first == nil {
			first = f
		}
	}
	if _, err := read(); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("one more: %v", err)
	}
	if _, err := c.Create("/mine/data/new"); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("one to write: %v", err)
	}
	if _, err := c.ReadDir("/mine/data"); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("a directory: %v", err)
	}
	first.Close()
	if _, err := read(); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// A large directory is listed completely, a page at a time.
func TestSFTPLargeDirectory(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	for i := range 2500 {
		h.Touch(fmt.Sprintf("f%04d", i))
	}
	list, err := storagetest.SFTPClient(t, address, "rw").ReadDir("/mine/data")
	if err != nil || len(list) != 2500 || list[2499].Name() != "f2499" {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

func TestSFTPLimit(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	limit := int64(4 << 20)
	if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	h.Write("old", "old")
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, storagetest.Random(5<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := storagetest.OpenSSH(t, address, "rw", "put "+big+" mine/data/old", "put "+big+" mine/data/new", "df mine/data")
	if !strings.Contains(out, "the scope's limit is 4194304 bytes") {
		t.Errorf("no reason is shown: %s", out)
	}
	if !strings.Contains(out, "4096") {
		t.Errorf("the limit is not shown: %s", out)
	}
	if raw, err := os.ReadFile(filepath.Join(h.Path, "old")); string(raw) != "old" {
		t.Errorf("is now %d bytes, %v", len(raw), err)
	}
	if _, err := os.Stat(filepath.Join(h.Path, "new")); !os.IsNotExist(err) {
		t.Errorf("a part is there: %v", err)
	}
	c := storagetest.SFTPClient(t, address, "rw")
	h.Write("used", string(storagetest.Random(1<<20)))
	wait.Until(t, "the usage is shown", func() bool {
		st, err := c.StatVFS("/mine/data")
		return err == nil && st.Blocks*st.Bsize == 4<<20 && st.Bavail*st.Bsize <= 3<<20 && st.Bavail > 0
	})
	if err := c.Truncate("/mine/data/old", 1<<40); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("extended beyond the limit: %v", err)
	}
}

// Revoking a token ends its connections, including idle ones, and discards unfinished uploads.
func TestSFTPEnds(t *testing.T) {
	t.Parallel()
	h, o, address := storagetest.NewSFTP(t)
	c, err := storagetest.DialSFTP(t, address, "rw")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Create("/mine/data/late")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("some")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	began := time.Now()
	o.Set("rw", nil)
	select {
	case <-ended:
		t.Logf("the connection ended after %v", time.Since(began))
	case <-time.After(time.Minute):
		t.Fatal("the connection continues")
	}
	if _, err := os.Stat(filepath.Join(h.Path, "late")); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	if _, err := storagetest.DialSFTP(t, address, "rw"); err == nil {
		t.Error("the token is good again")
	}
}

// When a share ends, only the transfers of its folder end.
func TestSFTPShareEnds(t *testing.T) {
	t.Parallel()
	h, o, address := storagetest.NewSFTP(t)
	h.Write("f", "f")
	c := storagetest.SFTPClient(t, address, "ro")
	f, err := c.Open("/shared/a@b/data/f")
	if err != nil {
		t.Fatal(err)
	}
	user := uuid.New()
	o.Set("ro", &storagepb.ListResponse{User: user[:]})
	wait.Until(t, "reading ends", func() bool {
		_, err := f.ReadAt(make([]byte, 1), 0)
		return storagetest.ErrorClass(err) == "denied"
	})
	if _, err := c.ReadDir("/"); err != nil {
		t.Errorf("the rest ends too: %v", err)
	}
	c = storagetest.SFTPClient(t, address, "rw")
	w, err := c.Create("/mine/data/new")
	if err != nil {
		t.Fatal(err)
	}
	late, err := c.Create("/mine/data/late")
	if err != nil {
		t.Fatal(err)
	}
	o.Set("rw", &storagepb.ListResponse{User: user[:]})
	wait.Until(t, "writing ends", func() bool {
		_, err := w.WriteAt([]byte("x"), 0)
		return storagetest.ErrorClass(err) == "denied"
	})
	for _, w := range []*sftp.File{w, late} {
		if err := w.Close(); storagetest.ErrorClass(err) != "denied" {
			t.Errorf("close %s: %v", w.Name(), err)
		}
		if _, err := os.Stat(filepath.Join(h.Path, filepath.Base(w.Name()))); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", w.Name(), err)
		}
	}
}

// The server supports only SFTP.
func TestSFTPAlone(t *testing.T) {
	t.Parallel()
	_, _, address := storagetest.NewSFTP(t)
	c, err := storagetest.DialSFTP(t, address, "rw")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"id", ""} {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		s.Stderr = &said
		if command == "" {
			if err = s.Shell(); err == nil {
				err = s.Wait()
			}
		} else {
			err = s.Run(command)
		}
		if e, ok := err.(*ssh.ExitError); !ok || e.ExitStatus() != 1 || !strings.Contains(said.String(), "SFTP only") {
			t.Errorf("%q: %v, said %q", command, err, said.String())
		}
	}
	if _, err := c.Dial("tcp", address); err == nil || !strings.Contains(err.Error(), "SFTP only") {
		t.Errorf("forwarding: %v", err)
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("forwarding back is offered")
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestSubsystem("shell"); err == nil {
		t.Error("another subsystem is there")
	}
}

func TestSFTPTrail(t *testing.T) {
	t.Parallel()
	h, o, address := storagetest.NewSFTP(t)
	h.Write("old", "old")
	c := storagetest.SFTPClient(t, address, "rw")
	f, err := c.Create("/mine/data/new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create("/mine/data/cut"); err != nil {
		t.Fatal(err)
	}
	edit, err := c.OpenFile("/mine/data/old", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edit.Write([]byte("OLD")); err != nil {
		t.Fatal(err)
	}
	if err := c.Chmod("/mine/data/new", 0o600); err != nil {
		t.Fatal(err)
	}
	h.Stop()
	var got []string
	for _, x := range o.Told[0].Operations {
		slices.Sort(x.Paths)
		got = append(got, fmt.Sprintf("%v %d of %d bytes: %s", x.Kind, x.Count, x.Bytes, strings.Join(x.Paths, ", ")))
	}
	if diff := cmp.Diff([]string{"WROTE 2 of 6 bytes: new, old", "SET 1 of 0 bytes: new"}, got); diff != "" || len(o.Told) != 1 || o.Told[0].Protocol != "SFTP" {
		t.Errorf("told %v: %s", o.Told, diff)
	}
}

// A key gives access to the folders of its user. It is rejected under another user name or without
// its private key.
func TestSFTPKeys(t *testing.T) {
	t.Parallel()
	h, o, address := storagetest.NewSFTP(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := storagetest.Must(ssh.NewSignerFromKey(private))
	enter := func(user string, key ssh.Signer) error {
		c, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second,
		})
		if err == nil {
			c.Close()
		}
		return err
	}
	const user = "me@example.org"
	if enter(user, key) == nil {
		t.Error("an unknown key is accepted")
	}
	name := user + " " + ssh.FingerprintSHA256(key.PublicKey())
	o.Set(name, o.Opens["rw"])
	wait.Until(t, "the key is good", func() bool { return enter(user, key) == nil })
	if enter("other@example.org", key) == nil {
		t.Error("the key is good under another name")
	}
	if err := enter(user, pretender{key}); err == nil {
		t.Error("a client without the private key is admitted")
	}
	for range 60 { // trying several keys does not count as a failed login
		_ = enter("other@example.org", key)
	}
	if enter(user, key) != nil {
		t.Errorf("tries with keys count as guesses: %s", h.Logs)
	}
	o.Set(name, nil)
	wait.Until(t, "the key is no longer accepted", func() bool { return enter(user, key) != nil })
}

// pretender presents a key and signs with another one.
type pretender struct{ ssh.Signer }

func (p pretender) Sign(r io.Reader, data []byte) (*ssh.Signature, error) {
	_, private, err := ed25519.GenerateKey(r)
	if err != nil {
		return nil, err
	}
	return storagetest.Must(ssh.NewSignerFromKey(private)).Sign(r, data)
}

func TestSFTPGuesses(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	first := h.Proxy.HostKey()
	for i := range 50 {
		if _, err := storagetest.DialSFTP(t, address, fmt.Sprint("guess", i)); err == nil {
			t.Fatal("a guess was good")
		}
	}
	if _, err := storagetest.DialSFTP(t, address, "rw"); err == nil {
		t.Error("a client with too many failures is not rejected")
	}
	if strings.Contains(h.Logs.String(), "guess1") {
		t.Error("a password is logged")
	}
	// A proxy has the same host key after a restart.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.Stop()
	h.Config.SFTP = l
	h.Start()
	if again := h.Proxy.HostKey(); again != first || !strings.HasPrefix(first, "SHA256:") {
		t.Errorf("host key %s, then %s", first, again)
	}
	st, err := os.Stat(filepath.Join(h.Config.Dir, "sftp_host_ed25519_key"))
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("host key: %v %v", st, err)
	}
}

func TestRcloneSFTP(t *testing.T) {
	t.Parallel()
	h, _, address := storagetest.NewSFTP(t)
	host, port, _ := net.SplitHostPort(address)
	rclone := storagetest.RequireProgram(t, "rclone")
	secret := strings.TrimSpace(run(t, rclone, "obscure", "rw"))
	rcloneRound(t, h, "[berth]\ntype = sftp\nhost = "+host+"\nport = "+port+"\nuser = me\npass = "+secret+"\n")
}
