package device

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	ocispecs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// template builds the plugin of the fictional vendor ACME, whose machine is in testdata.
func template(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template")
	out, err := exec.Command("go", "build", "-o", path, "github.com/berthhq/berth/plugins/accelerator/template").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return path
}

// on runs a manager on a simulated machine. The plugin starts only if its hardware is found.
func on(t *testing.T, dir, program string, tree *fixture.Tree) (m *Manager, stop func()) {
	t.Helper()
	m, err := New(Config{
		Dir: dir, Node: "n", Version: "test", Incarnation: "1", Logger: slog.New(slog.DiscardHandler),
		Plugins: []PluginConfig{{Path: program, Roots: tree.Roots(), ConfigJSON: tree.Config()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	m.AwaitReports(ctx, time.Minute)
	return m, stop
}

// short returns a directory for sockets, whose paths have a maximum length.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestFromAMachineToAContainer(t *testing.T) {
	tree := fixturetest.Start(t, "testdata/acme.yaml")
	m, _ := on(t, short(t), template(t), tree)
	wait.Until(t, "both cards are there", func() bool { return find(m, "acme:card-0") != nil && find(m, "acme:card-1") != nil })
	want := ask("acme:card-1", "acme.device", "1")
	if err := m.Allocate("a", want); err != nil {
		t.Fatal(err)
	}
	prepared, err := m.Prepare(t.Context(), Request{ID: "a", Allocations: want})
	if err != nil {
		t.Fatal(err)
	}
	spec := &ocispecs.Spec{Process: &ocispecs.Process{}, Linux: &ocispecs.Linux{Resources: &ocispecs.LinuxResources{}}}
	err = m.Apply(spec, prepared)
	if info, _ := os.Stat(filepath.Join(tree.Dir, "dev/acme1")); info.Mode()&os.ModeDevice == 0 {
		if !errdefs.IsFailedPrecondition(err) {
			t.Errorf("a file in place of a device: %v", err)
		}
		t.Skip("this machine does not let tests make device nodes")
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := spec.Linux.Devices; len(d) != 1 || d[0].Path != "/dev/acme0" || d[0].Type != "c" || d[0].Major != 1 || d[0].Minor != 3 {
		t.Errorf("devices: %+v", d)
	}
	if !slices.Contains(spec.Process.Env, "ACME_CARDS=1") {
		t.Errorf("environment: %q", spec.Process.Env)
	}
	prepared.Edits["acme"].Mounts = []*acceleratorpb.Mount{{Source: "/etc", Target: "/vendor"}}
	if err := m.Apply(&ocispecs.Spec{}, prepared); !errdefs.IsPermissionDenied(err) || !strings.Contains(err.Error(), "plugin acme: read-only mount of /etc") {
		t.Errorf("a mount of /etc: %v", err)
	}
	if err := tree.Change("unplug"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the card is lost", func() bool { return find(m, "acme:card-1").Health == agentpb.Device_LOST })
	if d := find(m, "acme:card-0"); d == nil || !d.Allocatable {
		t.Errorf("the other card: %v", d)
	}
}

// TestVendorThatIsNotHere checks that a plugin without hardware is started once to learn its
// vendors, and again only after its program has changed.
func TestVendorThatIsNotHere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte("name: bare\nplugin: template\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare, program, dir := fixturetest.Start(t, file), template(t), short(t)
	sockets := filepath.Join(dir, "s") // created at the first start
	started := func(tree *fixture.Tree) bool {
		t.Helper()
		if err := os.RemoveAll(sockets); err != nil {
			t.Fatal(err)
		}
		m, stop := on(t, dir, program, tree)
		defer stop()
		if p := describe(m).Plugins; tree == bare && len(p) > 0 {
			t.Errorf("plugins: %v", p)
		}
		_, err := os.Stat(sockets)
		return err == nil
	}
	if !started(bare) {
		t.Error("was not asked at the first time")
	}
	if started(bare) {
		t.Error("was asked twice")
	}
	again := template(t)
	if err := os.Rename(again, program); err != nil {
		t.Fatal(err)
	}
	if !started(bare) {
		t.Error("another program was not asked")
	}
	if !started(fixturetest.Start(t, "testdata/acme.yaml")) {
		t.Error("was not started where its hardware is")
	}
}

func TestOrigins(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"driver/lib", "driver/etc", "dev/dri", "sys/class", "bin", "work/x/a", "work/x/b", "state/x", "extra/in", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"driver/lib/out": dir + "/outside", "driver/lib/in": "../etc", "dev/dri/by-path": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	roots := &acceleratorpb.Roots{Driver: dir + "/driver", Dev: dir + "/dev", Sys: dir + "/sys", Proc: dir + "/proc", Path: []string{dir + "/bin"}}
	made := newPlugin(&Manager{cfg: Config{Dir: dir}}, PluginConfig{Path: "/srv/plugins/accelerator/p", Roots: roots, Allow: Allow{Mounts: []string{dir + "/extra"}}})
	made.key = "x"
	usual := newPlugin(&Manager{cfg: Config{Dir: dir}}, PluginConfig{Path: "/opt/p"})
	usual.key = "x"
	const read, write, node = "read", "write", "node"
	for _, row := range []struct {
		p         *plugin
		how, path string
		ok        bool
	}{
		{made, read, dir + "/driver/lib", true},
		{made, read, dir + "/driver/etc/vendor.json", true},
		{made, write, dir + "/driver/lib", false},
		{made, read, dir + "/driver", false},
		{made, read, dir + "/driver/lib/in", true},
		{made, read, dir + "/driver/lib/out", false},
		{made, read, dir + "/driver/lib/out/x", false},
		{made, read, dir + "/sys/class", true},
		{made, read, dir + "/bin/vendor-smi", true},
		{made, read, "/srv/plugins/lib/libx.so", true},
		{made, read, "/srv/plugins/accelerator/p", true},
		{made, read, "/srv/plugins/other", false},
		{made, write, dir + "/sys/class", false},
		{made, write, dir + "/work/x/a/pipe", true},
		{made, read, dir + "/work/x/b/pipe", false}, // belongs to another allocation
		{made, write, dir + "/state/x/mps", true},
		{made, write, dir + "/extra/in", true},
		{made, write, dir + "/extras", false},
		{made, read, "/etc", false},
		{made, read, "/", false},
		{made, read, "/proc/1/root/opt/x", false},
		{made, read, "/usr/lib", false}, // the driver is in another root
		{made, node, dir + "/dev/dri", true},
		{made, node, dir + "/dev/dri/by-path", false},
		{made, node, "/dev/null", false},
		{usual, read, "/usr/lib/libx.so", true},
		{usual, write, "/usr/lib/libx.so", false},
		{usual, read, "/opt/vendor", true},
		{usual, read, "/etc", false},
		{usual, read, "/etc/passwd", false},
		{usual, read, "/usr", false},
		{usual, read, "/usr/lib/../../etc", false},
		{usual, read, "/run/containerd", false},
		{usual, write, "/dev/hugepages", true},
		{usual, node, "/dev/null", true},
		{usual, node, "/dev/not-there", true},
		{usual, node, "/etc/passwd", false},
	} {
		e := &acceleratorpb.ContainerEdits{}
		if row.how == node {
			e.DeviceNodes = []*acceleratorpb.DeviceNode{{Path: "/dev/x", HostPath: row.path}}
		} else {
			e.Mounts = []*acceleratorpb.Mount{{Source: row.path, Target: "/x", Writable: row.how == write}}
		}
		err := row.p.origins("a").permit(e)
		if row.ok && err != nil || !row.ok && !errdefs.IsPermissionDenied(err) {
			t.Errorf("%s %s: %v", row.how, row.path, err)
		}
	}
}
