package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

func volume(t *testing.T) (Volumes, string) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"u1/data/deep", "u1/other", "u2/secret"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"u1/data/inside": "deep", "u1/data/sibling": "../other", "u1/data/absolute": "/etc",
		"u1/data/loop": "loop", "u1/link": "data", "u1/up": "../u2/secret",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "u1/data/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return Volumes{"v": {Path: root}, "gone": {Path: root + "/none"}}, root
}

func TestBind(t *testing.T) {
	v, root := volume(t)
	for _, tt := range []struct {
		name   string
		folder Folder
		want   string // expected directory, "" = refused
		class  func(error) bool
	}{
		{"folder", Folder{Path: "u1/data"}, "u1/data", nil},
		{"leading slash", Folder{Path: "/u1/data"}, "u1/data", nil},
		{"subpath", Folder{Path: "u1/data", Subpath: "deep"}, "u1/data/deep", nil},
		{"link that stays inside", Folder{Path: "u1/data", Subpath: "inside"}, "u1/data/deep", nil},
		{"link to a sibling folder", Folder{Path: "u1/data", Subpath: "sibling"}, "", errdefs.IsPermissionDenied},
		{"absolute link", Folder{Path: "u1/data", Subpath: "absolute"}, "", errdefs.IsPermissionDenied},
		{"endless link", Folder{Path: "u1/data", Subpath: "loop"}, "", errdefs.IsPermissionDenied},
		{"folder is a link", Folder{Path: "u1/link"}, "", errdefs.IsPermissionDenied},
		{"folder is a link elsewhere", Folder{Path: "u1/up"}, "", errdefs.IsPermissionDenied},
		{"dots", Folder{Path: "u1/../u2/secret"}, "u2/secret", nil},
		{"dots out of the volume", Folder{Path: "../etc"}, "", errdefs.IsInvalidArgument},
		{"dots out of the folder", Folder{Path: "u1/data", Subpath: "../other"}, "", errdefs.IsInvalidArgument},
		{"whole volume", Folder{Path: "."}, "", errdefs.IsInvalidArgument},
		{"missing folder", Folder{Path: "u1/none"}, "", errdefs.IsNotFound},
		{"missing subpath", Folder{Path: "u1/data", Subpath: "none"}, "", errdefs.IsNotFound},
		{"a file", Folder{Path: "u1/data", Subpath: "file"}, "", errdefs.IsFailedPrecondition},
		{"unknown volume", Folder{Volume: "w", Path: "u1/data"}, "", errdefs.IsFailedPrecondition},
		{"volume not mounted", Folder{Volume: "gone", Path: "u1/data"}, "", errdefs.IsFailedPrecondition},
		{"relative target", Folder{Path: "u1/data", Target: "data"}, "", errdefs.IsInvalidArgument},
		{"root target", Folder{Path: "u1/data", Target: "/."}, "", errdefs.IsInvalidArgument},
		{"system target", Folder{Path: "u1/data", Target: "/home/../proc/sys"}, "", errdefs.IsInvalidArgument},
		{"runner target", Folder{Path: "u1/data", Target: "/opt/berth"}, "", errdefs.IsInvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.folder.Volume == "" {
				tt.folder.Volume = "v"
			}
			if tt.folder.Target == "" {
				tt.folder.Target = "/home/work/data"
			}
			b, err := v.Open(t.Context(), []Folder{tt.folder})
			if tt.want == "" {
				if !tt.class(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			got, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", b.files[0].Fd()))
			if want := filepath.Join(root, tt.want); got != want {
				t.Errorf("bound %s, %v; want %s", got, err, want)
			}
		})
	}
}

func TestBindOrderAndAccess(t *testing.T) {
	v, _ := volume(t)
	b, err := v.Open(t.Context(), []Folder{
		{Volume: "v", Path: "u1/data", Target: "/home/work/a/b", ReadOnly: true},
		{Volume: "v", Path: "u1/other", Target: "/home/work/a/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir() + "/folders"
	mounts, err := b.Mount(dir)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range mounts {
		targets = append(targets, m.Destination)
		if ro := m.Destination == "/home/work/a/b"; slices.Contains(m.Options, "ro") != ro {
			t.Errorf("%s has %v", m.Destination, m.Options)
		}
		if m.Destination == "/home/work/a/b" {
			if _, err := os.Stat(m.Source + "/deep"); err != nil {
				t.Error(err)
			}
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("mount points left: %v", err)
	}
	if diff := cmp.Diff([]string{"/home/work/a", "/home/work/a/b"}, targets); diff != "" {
		t.Error(diff)
	}
	twice := []Folder{{Volume: "v", Path: "u1/data", Target: "/x"}, {Volume: "v", Path: "u1/other", Target: "/x/"}}
	if _, err := v.Open(t.Context(), twice); !errdefs.IsInvalidArgument(err) {
		t.Errorf("same target twice: %v", err)
	}
	if diff := cmp.Diff([]string{"v"}, v.Names()); diff != "" {
		t.Error(diff)
	}
}

func TestResolv(t *testing.T) {
	kept, servers := withoutLoopback("search lan\nnameserver 127.0.0.53\nnameserver 192.0.2.1\nnameserver ::1\noptions edns0\n")
	if servers != 1 || kept != "search lan\nnameserver 192.0.2.1\noptions edns0\n" {
		t.Errorf("%d servers in %q", servers, kept)
	}
}

func TestFiles(t *testing.T) {
	f := Files{Dir: t.TempDir(), Runner: "/bin/runner", Hostname: "main1", Bootstrap: "echo hello\n"}
	var targets []string
	for _, m := range f.Mounts() {
		targets = append(targets, m.Destination)
	}
	slices.Sort(targets)
	want := []string{"/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/home/work", "/opt/berth/bootstrap", "/opt/berth/runner"}
	if diff := cmp.Diff(want, targets); diff != "" {
		t.Error(diff)
	}
	f.Resources = []string{"A=1", "B=x y"}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	mounts := f.Mounts()
	for _, m := range mounts[1:] { // the first but one is the runner
		if _, err := os.Stat(m.Source); err != nil && m.Source != f.Runner {
			t.Error(err)
		}
	}
	last := mounts[len(mounts)-1]
	text, err := os.ReadFile(last.Source)
	if err != nil || last.Destination != Resources || !slices.Contains(last.Options, "ro") || string(text) != "A=1\nB=x y\n" {
		t.Errorf("%v: %q, %v", last, text, err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(f.Disk()); err != nil { // package kernel removes it, because it has a limit
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(f.Dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if strings.Contains(f.hosts(), "invalid") {
		t.Error(f.hosts())
	}
}
