package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

// client is the manager's side of a connection to a server with its own home directory.
type client struct {
	*containerfile.Conn
	t    *testing.T
	home string
	quit func() // closes the manager's side
	done chan error
}

func newClient(t *testing.T) *client {
	t.Helper()
	return newClientAt(t, t.TempDir())
}

func newClientAt(t *testing.T, home string) *client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := &client{Conn: containerfile.NewConn(fromServer, toServer), t: t, home: home, done: make(chan error, 1)}
	c.quit = func() { toServer.Close(); fromServer.Close() }
	go func() {
		err := Serve(in, out, home)
		in.Close()
		out.Close()
		c.done <- err
	}()
	t.Cleanup(c.quit)
	return c
}

func (c *client) ask(q containerfile.Request) containerfile.Answer {
	c.t.Helper()
	var a containerfile.Answer
	if err := c.Send(q); err != nil {
		c.t.Fatal(err)
	}
	if err := c.Receive(&a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// class is the class of the failure of an answer or of its first result.
func class(a containerfile.Answer) string {
	f := a.Failure
	if f == nil && len(a.Results) > 0 {
		f = a.Results[0].Failure
	}
	if f == nil {
		return ""
	}
	return f.Class
}

func (c *client) put(q containerfile.Request, content string) containerfile.Answer {
	c.t.Helper()
	q.Op = containerfile.Write
	if q.Size == 0 {
		q.Size = int64(len(content))
	}
	if a := c.ask(q); a.Failure != nil {
		return a
	}
	if _, err := c.Write([]byte(content)); err != nil {
		c.t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
	var a containerfile.Answer
	if err := c.Receive(&a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *client) get(path string) (string, containerfile.Answer) {
	c.t.Helper()
	a := c.ask(containerfile.Request{Op: containerfile.Open, Path: path})
	if a.Failure != nil {
		return "", a
	}
	var out bytes.Buffer
	for int64(out.Len()) < a.Info.Size {
		if b := c.ask(containerfile.Request{Op: containerfile.Read, Offset: int64(out.Len()), Length: 100_000}); b.Failure != nil {
			return "", b
		}
		if n, err := c.WriteTo(&out); err != nil || n == 0 {
			c.t.Fatalf("%d bytes, %v", n, err)
		}
	}
	return out.String(), a
}

func (c *client) names() []string {
	c.t.Helper()
	names := []string{}
	for _, e := range c.ask(containerfile.Request{Op: containerfile.List}).Listing.Entries {
		names = append(names, e.Name)
	}
	return names
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	text := strings.Repeat("0123456789", 50_000)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	a := c.put(containerfile.Request{Path: "a/b/file", Modified: at.UnixMilli()}, text)
	if a.Failure != nil || a.Info.Size != int64(len(text)) || a.Info.Modified != at.UnixMilli() || a.Info.Path != c.home+"/a/b/file" {
		t.Errorf("written: %+v", a)
	}
	got, opened := c.get("a/b/file")
	if got != text || opened.Info.Tag != a.Info.Tag || opened.Info.Tag == "" {
		t.Errorf("%d bytes, tag %q after %q", len(got), opened.Info.Tag, a.Info.Tag)
	}
	if err := os.Chmod(c.home+"/a/b/file", 0o751); err != nil {
		t.Fatal(err)
	}
	if a := c.put(containerfile.Request{Path: c.home + "/a/b/file"}, "new"); a.Failure != nil || a.Info.Mode != "-rwxr-x--x" {
		t.Errorf("replaced: %+v", a)
	}
	if d := cmp.Diff([]string{"file"}, readNames(t, c.home+"/a/b")); d != "" {
		t.Error(d)
	}
}

func readNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Conditions protect a file that another client has saved meanwhile.
func TestConditions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	first := c.put(containerfile.Request{Path: "f", Absent: true}, "1").Info.Tag
	if got := class(c.put(containerfile.Request{Path: "f", Absent: true}, "2")); got != containerfile.Exists {
		t.Errorf("a second new file: %q", got)
	}
	second := c.put(containerfile.Request{Path: "f", Tag: first}, "3")
	if second.Failure != nil {
		t.Fatal(second.Failure)
	}
	if got := class(c.put(containerfile.Request{Path: "f", Tag: first}, "4")); got != containerfile.Changed {
		t.Errorf("over a change: %q", got)
	}
	if text, _ := c.get("f"); text != "3" {
		t.Errorf("the file has %q", text)
	}
}

// An interrupted upload continues at its offset, and the file does not appear before the end.
func TestUploadsAreResumed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	q := containerfile.Request{Op: containerfile.Write, Path: "big", Size: 10, Upload: "0123456789abcdef"}
	c := newClientAt(t, home)
	if a := c.ask(q); a.Failure != nil {
		t.Fatal(a.Failure)
	}
	_, _ = c.Write([]byte("01234"))
	c.quit() // the connection breaks
	<-c.done
	c = newClientAt(t, home)
	if a := c.ask(containerfile.Request{Op: containerfile.Open, Path: "big"}); class(a) != containerfile.NotFound {
		t.Errorf("the half can be read: %+v", a)
	}
	partial := containerfile.Request{Op: containerfile.Partial, Path: "big", Upload: q.Upload}
	if a := c.ask(partial); a.Offset != 5 {
		t.Fatalf("%+v", a)
	}
	q.Offset = 7
	if a := c.ask(q); class(a) != containerfile.WrongOffset {
		t.Errorf("a gap: %+v", a)
	}
	q.Offset = 5
	if a := c.put(q, "56"); a.Failure != nil || a.Offset != 7 || a.Info != nil {
		t.Errorf("not to the end: %+v", a)
	}
	q.Offset = 7
	if a := c.put(q, "789"); a.Failure != nil || a.Info == nil {
		t.Errorf("to the end: %+v", a)
	}
	if text, _ := c.get("big"); text != "0123456789" {
		t.Errorf("the file has %q", text)
	}
	q.Offset, q.Path = 0, "other"
	c.put(q, "01")
	if a := c.ask(containerfile.Request{Op: containerfile.Discard, Path: "other", Upload: q.Upload}); a.Failure != nil {
		t.Error(a.Failure)
	}
	if d := cmp.Diff([]string{"big"}, readNames(t, home)); d != "" {
		t.Errorf("after the upload was discarded: %s", d)
	}
}

// Without a name, an upload that breaks leaves nothing behind.
func TestBrokenUploadsLeaveNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.ask(containerfile.Request{Op: containerfile.Write, Path: "f", Size: 10})
	_, _ = c.Write([]byte("01234"))
	c.quit()
	<-c.done
	if names := readNames(t, c.home); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}

func TestMoreThanTheSize(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.ask(containerfile.Request{Op: containerfile.Write, Path: "f", Size: 3})
	go c.Write([]byte("0123456789"))
	var a containerfile.Answer
	if err := c.Receive(&a); err != nil || class(a) != containerfile.Invalid {
		t.Errorf("%+v, %v", a, err)
	}
	if err := <-c.done; err == nil {
		t.Error("the connection continues")
	}
	if names := readNames(t, c.home); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}

// A full disk is reported at once, while the client is still sending.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("tmpfs cannot be mounted: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	c := newClientAt(t, dir)
	c.ask(containerfile.Request{Op: containerfile.Write, Path: "f", Size: 1 << 30, Upload: "0123456789abcdef"})
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 1<<14 && err == nil; i++ {
			_, err = c.Write(make([]byte, 64<<10))
		}
		sent <- err
	}()
	var a containerfile.Answer
	if err := c.Receive(&a); err != nil || class(a) != containerfile.NoSpace || !strings.Contains(a.Failure.Message, "no space left") {
		t.Errorf("%+v, %v", a, err)
	}
	if err := <-sent; err == nil {
		t.Error("the sender could send everything")
	}
}

func TestDirectoriesArePaged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	want := []string{}
	for i := range 2500 {
		name := fmt.Sprintf("f%04d", i)
		want = append(want, name)
		write(t, filepath.Join(c.home, name), "")
	}
	got, pages := []string{}, 0
	for after := ""; ; pages++ {
		l := c.ask(containerfile.Request{Op: containerfile.List, After: after, First: 1000}).Listing
		for _, e := range l.Entries {
			got = append(got, e.Name)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" || pages != 2 {
		t.Errorf("%d pages: %s", pages, d)
	}
	if a := c.ask(containerfile.Request{Op: containerfile.List, After: "f0001"}); class(a) != containerfile.Invalid {
		t.Errorf("a forged cursor: %+v", a)
	}
}

// After a page that ends with a name that is not UTF-8, the next page continues.
func TestPagesOfHostileNames(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for i := range 4 {
		write(t, filepath.Join(c.home, fmt.Sprintf("bad\xff%d", i)), "")
	}
	seen := 0
	for after := ""; ; {
		l := c.ask(containerfile.Request{Op: containerfile.List, After: after, First: 1}).Listing
		if seen += len(l.Entries); seen > 4 {
			t.Fatal("the pages do not end")
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if seen != 4 {
		t.Errorf("%d entries", seen)
	}
}

func TestEntriesAreDescribed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	write(t, c.home+"/dir/file", "12345")
	_ = os.Symlink("dir", c.home+"/to-dir")
	_ = os.Symlink("/nowhere", c.home+"/dangling")
	if err := unix.Mkfifo(c.home+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, c.home+"/s", "")
	_ = os.Chmod(c.home+"/s", 0o755|os.ModeSetuid)
	type seen struct{ Name, Type, Mode, Target, TargetType string }
	got := []seen{}
	l := c.ask(containerfile.Request{Op: containerfile.List}).Listing
	for _, e := range l.Entries {
		got = append(got, seen{e.Name, e.Type, e.Mode, e.Target, e.TargetType})
	}
	want := []seen{
		{"dangling", "symlink", "lrwxrwxrwx", "/nowhere", ""},
		{"dir", "directory", "drwxr-xr-x", "", ""},
		{"fifo", "other", "prw-------", "", ""},
		{"s", "file", "-rwsr-xr-x", "", ""},
		{"to-dir", "symlink", "lrwxrwxrwx", "dir", "directory"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if l.Path != c.home || l.Home != c.home {
		t.Errorf("%s, %s", l.Path, l.Home)
	}
}

// Names that people can create in a container are listed, read and deleted without harm.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	hostile := []string{"a\nb", "\u202egnp.exe", strings.Repeat("x", 255), "-rf", "\"><script>", "%2e%2e", "a\\b", " "}
	for _, name := range hostile {
		write(t, filepath.Join(c.home, name), name)
	}
	names := c.names()
	for _, name := range hostile {
		if !slices.Contains(names, name) {
			t.Errorf("%q is not listed", name)
		}
		if text, a := c.get(name); text != name {
			t.Errorf("%q: %q, %+v", name, text, a)
		}
	}
	write(t, filepath.Join(c.home, "bad\xff"), "")
	if names := c.names(); !slices.Contains(names, "bad\ufffd") {
		t.Errorf("a name that is not UTF-8: %q", names)
	}
	for path, want := range map[string]string{
		strings.Repeat("x", 256): containerfile.Invalid, "a\x00b": containerfile.Invalid, "bad\ufffd": containerfile.NotFound,
		"a\nb/c": containerfile.NotFound, "../../../../../../../../../../nowhere": containerfile.NotFound,
	} {
		if _, a := c.get(path); class(a) != want {
			t.Errorf("%q: %+v", path, a)
		}
	}
}

// Devices, pipes and sockets are not opened, and directories are not read as files.
func TestOnlyFilesAreRead(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	if err := unix.Mkfifo(c.home+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Symlink("fifo", c.home+"/link")
	for _, path := range []string{"fifo", "link", "/dev/zero", "."} {
		if _, a := c.get(path); class(a) != containerfile.Precondition {
			t.Errorf("%s: %+v", path, a)
		}
		if a := c.put(containerfile.Request{Path: path}, "x"); class(a) != containerfile.Precondition {
			t.Errorf("written to %s: %+v", path, a)
		}
	}
	if a := c.ask(containerfile.Request{Op: containerfile.Archive, Path: "/proc", Format: "zip"}); class(a) != containerfile.Precondition {
		t.Errorf("/proc as an archive: %+v", a)
	}
	// Files of the kernel have size 0, but a content.
	if a := c.ask(containerfile.Request{Op: containerfile.Open, Path: "/proc/self/status"}); a.Failure != nil || a.Info.Size != 0 {
		t.Fatalf("%+v", a)
	}
	c.ask(containerfile.Request{Op: containerfile.Read, Length: 1000})
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil || !strings.HasPrefix(out.String(), "Name:") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestFileThatShrinks(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	write(t, c.home+"/log", "0123456789")
	c.ask(containerfile.Request{Op: containerfile.Open, Path: "log"})
	_ = os.Truncate(c.home+"/log", 4)
	c.ask(containerfile.Request{Op: containerfile.Read, Length: 10})
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil || out.String() != "0123" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	write(t, c.home+"/dir/file", "1")
	write(t, c.home+"/other", "2")
	move := func(from, to string, overwrite bool) string {
		return class(c.ask(containerfile.Request{Op: containerfile.Move, Items: []containerfile.Item{{From: from, To: to}}, Overwrite: overwrite}))
	}
	remove := func(path string, recursive bool) string {
		return class(c.ask(containerfile.Request{Op: containerfile.Remove, Paths: []string{path}, Recursive: recursive}))
	}
	mkdir := func(path string) string {
		return class(c.ask(containerfile.Request{Op: containerfile.Mkdir, Paths: []string{path}}))
	}
	for i, step := range []struct{ got, want string }{
		{mkdir("new/deep"), ""},
		{mkdir("new"), containerfile.Exists},
		{mkdir("other"), containerfile.Exists},
		{mkdir("other/below"), containerfile.NotFound},
		{move("dir", "dir/into", false), containerfile.Invalid},
		{move("dir/file", "other", false), containerfile.Exists},
		{move("dir/file", "new", true), containerfile.Precondition},
		{move("dir/file", "other", true), ""},
		{move("missing", "x", false), containerfile.NotFound},
		{move("other", "/dev/shm/berth-files-test", false), containerfile.Precondition},
		{remove("new", false), containerfile.Precondition},
		{remove("new", true), ""},
		{remove("new", true), containerfile.NotFound},
		{remove("/", true), containerfile.Precondition},
	} {
		if step.got != step.want {
			t.Errorf("step %d: %q, want %q", i, step.got, step.want)
		}
	}
	if d := cmp.Diff([]string{"dir", "other"}, c.names()); d != "" {
		t.Error(d)
	}
}

// The files of a mounted folder are not deleted with the directory that it is mounted in.
func TestMountedFoldersStay(t *testing.T) {
	c := newClient(t)
	write(t, c.home+"/work/keep", "1")
	folder := c.home + "/work/my data"
	write(t, folder+"/x", "")
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("tmpfs cannot be mounted: %v", err)
	}
	defer unix.Unmount(folder, unix.MNT_DETACH)
	write(t, folder+"/result", "of a month")
	for _, path := range []string{"work", "work/my data", "."} {
		a := c.ask(containerfile.Request{Op: containerfile.Remove, Paths: []string{path}, Recursive: true})
		if class(a) != containerfile.Precondition || !strings.Contains(a.Results[0].Failure.Message, "mounted") {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, path := range []string{folder + "/result", c.home + "/work/keep"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	write(t, c.home+"/d/a.txt", "text")
	write(t, c.home+"/d/sub/b.bin", strings.Repeat("x", 200_000))
	write(t, c.home+"/d/LEFT-OUT.txt", "mine")
	_ = os.Symlink("/etc/passwd", c.home+"/d/link")
	_ = unix.Mkfifo(c.home+"/d/fifo", 0o600)
	pack := func(format string) []byte {
		if a := c.ask(containerfile.Request{Op: containerfile.Archive, Path: "d", Format: format}); a.Failure != nil {
			t.Fatal(a.Failure)
		}
		var out bytes.Buffer
		if _, err := c.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	b := pack("zip")
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(text)
	}
	want := map[string]string{
		"a.txt": "text", "sub/": "", "sub/b.bin": strings.Repeat("x", 200_000), "LEFT-OUT.txt": "mine",
		"BERTH-LEFT-OUT.txt": "These entries are not in the archive:\n\nfifo: a device, a socket or a pipe\nlink: a link\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	names := []string{}
	r := tar.NewReader(bytes.NewReader(pack("tar")))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(h.Typeflag)+h.Name)
	}
	if d := cmp.Diff([]string{"0LEFT-OUT.txt", "0a.txt", "2link", "5sub/", "0sub/b.bin", "0BERTH-LEFT-OUT.txt"}, names); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]string{"missing": containerfile.NotFound, "d/a.txt": containerfile.Precondition} {
		if a := c.ask(containerfile.Request{Op: containerfile.Archive, Path: path, Format: "zip"}); class(a) != want {
			t.Errorf("%s: %+v", path, a)
		}
	}
	if a := c.ask(containerfile.Request{Op: containerfile.Archive, Path: "d", Format: "rar"}); class(a) != containerfile.Invalid {
		t.Errorf("%+v", a)
	}
}

func TestUnknownRequests(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, q := range []containerfile.Request{
		{Op: "chmod"}, {Op: containerfile.Read, Length: 1}, {Op: containerfile.Write, Path: "f", Size: -1},
		{Op: containerfile.Write, Path: "f", Size: 1, Offset: 2}, {Op: containerfile.Write, Path: "f", Size: 1, Upload: "../../etc/x"},
		{Op: containerfile.Discard, Path: "f", Upload: "../../../file"},
	} {
		if a := c.ask(q); class(a) != containerfile.Invalid {
			t.Errorf("%+v: %+v", q, a)
		}
	}
}
