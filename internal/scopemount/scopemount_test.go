package scopemount_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/internal/simulator/image/imagetest"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const (
	first  = "0123456789abcdef0123456789abcdef"
	second = "fedcba9876543210fedcba9876543210"
)

// pool is a btrfs file system with a subvolume for each of two scopes, and the rule
// that mounts them.
func pool(t *testing.T) (rule scopemount.Rule, dir string) {
	t.Helper()
	mount, device := imagetest.New(t)
	for _, name := range []string{first, second} {
		if out, err := exec.Command("btrfs", "subvolume", "create", filepath.Join(mount, "berth-"+name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	dir = t.TempDir()
	t.Cleanup(func() {
		for _, m := range mounted(t, dir) {
			_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH)
		}
	})
	return scopemount.Rule{Type: "btrfs", Source: device, Options: []string{"subvol=/berth-{scope}"}}, dir
}

func mounted(t *testing.T, dir string) []*mountinfo.Info {
	t.Helper()
	list, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func write(t *testing.T, f *os.File, name string) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, f *os.File) []string {
	t.Helper()
	list, err := f.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// A scope is mounted when it is opened, is found after a restart, stays while it is open, and is
// unmounted with everything in it when it has been unused for a while.
func TestScopesAreMounted(t *testing.T) {
	rule, dir := pool(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	m := scopemount.New(scopemount.Config{Dir: link, Rule: rule})
	f, err := m.Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, "kept")
	at := mounted(t, dir)
	if len(at) != 1 || at[0].Root != "/berth-"+first || !strings.Contains(at[0].Options, "nosuid,nodev") {
		t.Fatalf("mounted: %+v", at)
	}
	again := scopemount.New(scopemount.Config{Dir: dir, Rule: rule, Idle: time.Millisecond})
	g, err := again.Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, g); !slices.Equal(got, []string{"kept"}) || len(mounted(t, dir)) != 1 {
		t.Errorf("found again: %v, %d mounts", got, len(mounted(t, dir)))
	}
	g.Close()
	if err := again.Unmount(first); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount of an open scope: %v", err)
	}
	f.Close()
	for name, n := range map[string]*scopemount.Mounts{"who has used it": m, "who has not": scopemount.New(scopemount.Config{Dir: dir, Rule: rule})} {
		if err := n.Sweep(); err != nil || len(mounted(t, dir)) != 1 {
			t.Errorf("%s unmounts a recently used scope: %v", name, err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { again.Run(ctx); close(done) }()
	wait.Until(t, "unused mounts are unmounted", func() bool { return len(mounted(t, dir)) == 0 })
	cancel()
	<-done

	for name, want := range map[string]int{first: 1, second: 0} {
		f, err := m.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, f); len(got) != want {
			t.Errorf("scope %s has %v", name, got)
		}
		f.Close()
	}
	if list, err := m.Mounted(); err != nil || len(list) != 2 {
		t.Errorf("mounted: %v, %v", list, err)
	}
}

// A scope that the product has removed is unmounted at the next look-up.
func TestAStaleMountIsTakenAway(t *testing.T) {
	rule, dir := pool(t)
	m := scopemount.New(scopemount.Config{Dir: dir, Rule: rule})
	f, err := m.Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	top := t.TempDir()
	if err := unix.Mount(rule.Source, top, "btrfs", 0, "subvolid=5"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(top, unix.MNT_DETACH) }()
	if out, err := exec.Command("btrfs", "subvolume", "delete", filepath.Join(top, "berth-"+first)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := m.Open(t.Context(), first); !errdefs.IsUnavailable(err) {
		t.Errorf("open: %v", err)
	}
	if at := mounted(t, dir); len(at) != 0 {
		t.Errorf("mounted still: %+v", at[0])
	}
}

// Of the mounts that a product requests, only those that match the operator's rule are made.
func TestPlansAreHeldToTheRule(t *testing.T) {
	rule, dir := pool(t)
	good := scopemount.Spec{Type: "btrfs", Source: rule.Source, Options: []string{"nodev", "subvol=/berth-" + first}}
	for name, tt := range map[string]struct {
		change func(*scopemount.Spec)
		want   string // "" = mounted
	}{
		"as written":       {func(*scopemount.Spec) {}, ""},
		"another type":     {func(s *scopemount.Spec) { s.Type = "ext4" }, "the type"},
		"another source":   {func(s *scopemount.Spec) { s.Source = "/dev/sda" }, "the source"},
		"another's scope":  {func(s *scopemount.Spec) { s.Options = []string{"subvol=/berth-" + second} }, "the option"},
		"a further option": {func(s *scopemount.Spec) { s.Options = []string{"suid"} }, "the option"},
	} {
		plan := good
		tt.change(&plan)
		m := scopemount.New(scopemount.Config{Dir: dir, Rule: rule, Plan: func(context.Context, string) (scopemount.Spec, error) { return plan, nil }})
		f, err := m.Open(t.Context(), first)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
			if err := m.Unmount(first); err != nil {
				t.Error(err)
			}
		}
	}
}

// A mount that fails returns the reason, is not retried at once, and leaves nothing open.
func TestAMountThatFails(t *testing.T) {
	dir := t.TempDir()
	rule := scopemount.Rule{Type: "btrfs", Source: "/dev/not-there-{scope}"}
	asked := 0
	m := scopemount.New(scopemount.Config{Dir: dir, Rule: rule, Plan: func(_ context.Context, scope string) (scopemount.Spec, error) {
		asked++
		return scopemount.Spec{Type: "btrfs", Source: "/dev/not-there-" + scope}, nil
	}})
	for range 3 {
		_, err := m.Open(t.Context(), first)
		if !errdefs.IsUnavailable(err) || !strings.Contains(err.Error(), "mount btrfs /dev/not-there-"+first) || strings.Contains(err.Error(), dir) {
			t.Errorf("%v", err)
		}
	}
	if asked != 1 || m.Failing() == nil {
		t.Errorf("asked %d times; failing: %v", asked, m.Failing())
	}
	for _, name := range []string{"", "..", "../" + first, strings.ToUpper(first), first + "/x"} {
		if _, err := m.Open(t.Context(), name); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Another mount at the path of a scope is neither used nor unmounted.
func TestAnotherMountAtItsPlace(t *testing.T) {
	rule, dir := pool(t)
	m := scopemount.New(scopemount.Config{Dir: dir, Rule: rule})
	point := filepath.Join(dir, first)
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(t.Context(), first); !errdefs.IsFailedPrecondition(err) || m.Failing() == nil {
		t.Errorf("tmpfs: %v, failing %v", err, m.Failing())
	}
	if err := m.Unmount(first); err != nil || len(mounted(t, dir)) != 1 {
		t.Errorf("unmount: %v, %d mounts", err, len(mounted(t, dir)))
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "btrfs", "-o", "subvol=/berth-"+second, rule.Source, point).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := m.Open(t.Context(), first); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("the scope of another: %v", err)
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	// Its operator puts the right one there.
	if out, err := exec.Command("mount", "-t", "btrfs", "-o", "subvol=/berth-"+first, rule.Source, point).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := m.Open(t.Context(), first)
	if err != nil || m.Failing() != nil {
		t.Fatalf("the right one: %v, failing %v", err, m.Failing())
	}
	f.Close()
}

func TestRules(t *testing.T) {
	for text, want := range map[string]bool{
		"nfs,192.0.2.10:/berth-{scope},vers=4.1,hard": true, "btrfs,/dev/sdb,subvol=/berth-{scope}": true, "nfs4,[2001:db8::1]:/x/{scope}": true,
		"nfs": false, "nfs,192.0.2.10:/one": false, "NFS,s:/{scope}": false, "nfs,-o{scope}": false, "nfs,a b:/{scope}": false,
		"nfs,s:/{scope},suid": false, "nfs,s:/{scope},dev": false, "nfs,s:/{scope},bind": false, "nfs,s:/{scope},x-mount.mkdir": false,
		"nfs,s:/{scope},remount": false, "nfs,s:/{scope},helper=sh": false, "nfs,s:/{scope},-t": false, "nfs,s:/{scope},": false,
	} {
		if _, err := scopemount.ParseRule(text); (err == nil) != want || err != nil && !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
