package commit

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runner/peer"
)

// tree is the file system of a container: an image with one layer, and a writable layer.
type tree struct{ upper, lower string }

func newTree(t testing.TB) tree {
	t.Helper()
	dir := t.TempDir()
	tr := tree{filepath.Join(dir, "upper"), filepath.Join(dir, "lower")}
	for _, d := range []string{tr.upper, tr.lower} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (tr tree) make(t testing.TB, edit func(*Source)) (Layer, error) {
	t.Helper()
	src := Source{Upper: tr.upper, Lower: []string{tr.lower}}
	if edit != nil {
		edit(&src)
	}
	return Make(t.Context(), src, t.TempDir(), nil)
}

func (tr tree) layer(t testing.TB, edit func(*Source)) (Layer, map[string]string) {
	t.Helper()
	l, err := tr.make(t, edit)
	if err != nil {
		t.Fatal(err)
	}
	return l, unpack(t, l)
}

// unpack returns the paths of a layer with their contents: the text of files, "->" and the target of
// links.
func unpack(t testing.TB, l Layer) map[string]string {
	t.Helper()
	out := map[string]string{}
	if l.Digest == "" {
		return out
	}
	f, err := os.Open(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name] = string(text); h.Linkname != "" {
			out[h.Name] = "->" + h.Linkname
		}
	}
}

func TestLayerHasChangesOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("whiteouts need root")
	}
	tr := newTree(t)
	put(t, tr.lower, "etc/motd", "hello")
	put(t, tr.lower, "usr/lib/old", "old")
	put(t, tr.lower, "srv/data/x", "x")
	put(t, tr.upper, "etc/motd", "bye")
	put(t, tr.upper, "opt/tool/bin", "tool")
	if err := os.Link(filepath.Join(tr.upper, "opt/tool/bin"), filepath.Join(tr.upper, "opt/tool/same")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(tr.upper, "opt/link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"usr/lib/old", "usr/lib/never"} {
		if err := os.MkdirAll(filepath.Join(tr.upper, "usr/lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(filepath.Join(tr.upper, name), unix.S_IFCHR, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(tr.upper, "srv/data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(tr.upper, "srv/data"), opaqueAttr, []byte("y"), 0); err != nil {
		t.Skipf("this file system has no trusted attributes: %v", err)
	}
	first, got := tr.layer(t, nil)
	want := map[string]string{
		"etc/motd": "bye", "opt/": "", "opt/tool/": "", "opt/tool/bin": "tool", "opt/tool/same": "->opt/tool/bin",
		"opt/link": "->/etc/shadow", "usr/lib/.wh.old": "", "srv/data/": "", "srv/data/.wh..wh..opq": "",
	}
	for name, text := range want {
		if has, ok := got[name]; !ok || has != text {
			t.Errorf("%s is %q (present: %v), want %q", name, has, ok, text)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is in the layer", name)
	}
	if again, _ := tr.layer(t, nil); again.Digest != first.Digest || again.DiffID != first.DiffID {
		t.Errorf("the second layer of the same files is %s, the first was %s", again.Digest, first.Digest)
	}
}

func TestNoChangesNoLayer(t *testing.T) {
	tr := newTree(t)
	put(t, tr.lower, "etc/passwd", "root:x:0:0::/root:/bin/sh")
	put(t, tr.upper, "etc/passwd", "root:x:0:0::/root:/bin/sh\nwork:x:1234:1234::"+mount.Work+":/bin/sh\n")
	put(t, tr.upper, "home/work/.keep", "") // a mount point
	put(t, tr.upper, "opt/berth/runner", "")
	put(t, tr.upper, "tmp/scratch", "x")
	put(t, tr.upper, "data/set/file", "mounted")
	if l, got := tr.layer(t, func(s *Source) { s.Mounts = []string{"/data/set"} }); l.Digest != "" {
		t.Errorf("the layer has %v", got)
	}
}

func TestAccountsOfSessionsStayOut(t *testing.T) {
	tr := newTree(t)
	put(t, tr.lower, "etc/passwd", "root:x:0:0::/root:/bin/sh\n")
	put(t, tr.upper, "etc/passwd", "root:x:0:0::/root:/bin/sh\nuser1234:x:1234:1234::"+mount.Work+":/bin/sh\npostgres:x:70:70::/var/lib/postgres:/bin/sh\n")
	_, got := tr.layer(t, nil)
	if want := "root:x:0:0::/root:/bin/sh\npostgres:x:70:70::/var/lib/postgres:/bin/sh\n"; got["etc/passwd"] != want {
		t.Errorf("/etc/passwd is %q, want %q", got["etc/passwd"], want)
	}
}

// Every place where the agent mounts a file of its own is excluded even if the container has no such
// mount: a file that a session left there must not reach another user's session.
func TestPlacesOfTheAgentAreExcluded(t *testing.T) {
	files := mount.Files{Dir: t.TempDir(), Bootstrap: "x", Resources: []string{"x"}, Cluster: &peer.Files{}}
	e := newExclusion(nil)
	for _, m := range files.Mounts() {
		p, dropped := relative(m.Destination), false
		for at := p; at != ""; at = parent(at) {
			dropped = dropped || e.drops(at)
		}
		if !dropped {
			t.Errorf("%s is mounted by the agent and not excluded", m.Destination)
		}
	}
	for _, p := range []string{peer.Config, peer.Job, peer.Dir} {
		dropped := false
		for at := relative(p); at != ""; at = parent(at) {
			dropped = dropped || e.drops(at)
		}
		if !dropped {
			t.Errorf("%s is mounted by the agent and not excluded", p)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	const secret = "s3cr3t"
	for _, name := range slices.Concat(credentials, history, injected, volatile) {
		tr := newTree(t)
		put(t, tr.upper, "srv/kept", "kept")
		for _, dir := range []string{"", "root/", "home/other/"} {
			if dir == "" || !slices.Contains(slices.Concat(injected, volatile), name) {
				put(t, tr.upper, dir+name, secret)
			}
		}
		_, got := tr.layer(t, nil)
		for p, text := range got {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in the layer", p)
			}
		}
		if got["srv/kept"] != "kept" {
			t.Errorf("other files are not in the layer: %v", got)
		}
	}
}

// A process replaces a directory by a link to a directory of the host while its files are copied.
func TestLinksDoNotLeaveTheLayer(t *testing.T) {
	host := t.TempDir()
	put(t, host, "key", "of the host")
	tr := newTree(t)
	put(t, tr.upper, "srv/dir/key", "of the session")
	pause := func(_ context.Context, f func() error) error {
		if err := os.RemoveAll(filepath.Join(tr.upper, "srv/dir")); err != nil {
			return err
		}
		if err := os.Symlink(host, filepath.Join(tr.upper, "srv/dir")); err != nil {
			return err
		}
		return f()
	}
	_, got := tr.layer(t, func(s *Source) { s.Pause = pause })
	if got["srv/dir"] != "->"+host {
		t.Errorf("the link is %q", got["srv/dir"])
	}
	for p, text := range got {
		if strings.Contains(text, "of the host") {
			t.Errorf("%s has a file of the host", p)
		}
	}
	m := &maker{src: Source{Upper: tr.upper}, dir: t.TempDir(), exclude: newExclusion(nil), files: map[inode]*staged{}, bound: 1 << 20}
	root, err := os.OpenRoot(tr.upper)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := m.copy(t.Context(), root, "srv/dir/key", &entry{path: "srv/dir/key"}, nil); err == nil {
		t.Error("a file behind the link was copied")
	}
}

// Files that change between the copy and the pause have the content of the pause.
func TestCopiesAreOfThePause(t *testing.T) {
	tr := newTree(t)
	for i := range 50 {
		put(t, tr.upper, fmt.Sprintf("srv/%02d", i), "before")
	}
	pause := func(_ context.Context, f func() error) error {
		put(t, tr.upper, "srv/07", "during")
		put(t, tr.upper, "srv/new", "during")
		if err := os.Remove(filepath.Join(tr.upper, "srv/08")); err != nil {
			return err
		}
		return f()
	}
	_, got := tr.layer(t, func(s *Source) { s.Pause = pause })
	if _, left := got["srv/08"]; left || got["srv/07"] != "during" || got["srv/new"] != "during" || got["srv/06"] != "before" {
		t.Errorf("the layer has 06=%q 07=%q new=%q 08=%v", got["srv/06"], got["srv/07"], got["srv/new"], left)
	}
}

func TestLimitOfALayer(t *testing.T) {
	tr := newTree(t)
	put(t, tr.upper, "srv/big", string(bytes.Repeat([]byte("x"), 2000)))
	_, err := tr.make(t, func(s *Source) { s.MaxBytes = 1000 })
	if !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "1000") {
		t.Errorf("the error is %v, want one with the limit", err)
	}
}
