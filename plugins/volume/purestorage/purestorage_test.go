package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/purestorage"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const (
	scopeA = "0123456789abcdef0123456789abcdef"
	scopeB = "fedcba9876543210fedcba9876543210"
)

// directories are the options of the mode shared.
var directories = map[string]any{"mode": shared, "filesystem": "berth", "data_address": "", "usage_max_age_s": 0}

// TestConformance runs the suite on the simulator on btrfs with a file system per scope.
func TestConformance(t *testing.T) {
	simulatortest.Conform(t, purestorage.New, simulator.Options{PageSize: 2})
}

// TestLive runs the suite against an array, see docs/storage/purestorage.md.
func TestLive(t *testing.T) { simulatortest.Live(t, "PURESTORAGE") }

// TestRequests compares the requests to an array with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	step := b.Steps(regexp.MustCompile(`"(capacity|total_physical|unique|virtual|time)":\d+`), regexp.MustCompile(`"[a-z_]*per_[a-z_]*":[-+.e\d]+`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	step("unlimited", b.Create(scopeB, nil))
	step("limit", b.Limit(scopeA, simulatortest.Bytes(64<<20)))
	step("lift", b.Limit(scopeA, nil))
	b.List()
	step("list", nil)
	step("delete", b.Delete(scopeA))
	step("again", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	b.Open(map[string]any{"eradicate": true})
	b.Simulator.Forget()
	step("eradicate", b.Delete(scopeA))
	_, err := b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
	_, err = b.Performance(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("performance", err)
	b.Open(directories)
	_, err = b.Performance(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("shared", err)
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	if opened.Enforcement != pb.Enforcement_HARD || slices.Contains(opened.Capabilities, pb.Capability_CLONE) || !slices.Contains(opened.Capabilities, pb.Capability_PER_SCOPE_MOUNT) {
		t.Errorf("opened as %v", opened)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/data", 32<<20)
	b.Must(b.Limit(scopeA, simulatortest.Bytes(64<<20)))
	b.Must(b.Write(scopeA+"/data", 32<<20))
	b.Must(b.Limit(scopeA, simulatortest.Bytes(8<<20))) // less than the stored data
	b.Refused(scopeA+"/more", 8<<20)
	b.Must(b.Limit(scopeA, nil))
	b.Must(b.Write(scopeA+"/data", 80<<20))
	s, err := b.Get(scopeA)
	if err != nil || s.Limit.Bytes != nil || s.GetUsedBytes() < 80<<20 || s.UsedInodes != nil {
		t.Errorf("scope %v, %v", s, err)
	}
	if err := b.Create(scopeB, simulatortest.Bytes(0)); status.Code(err) != codes.InvalidArgument || b.Simulator.Tree.IsDir(scopeB) {
		t.Errorf("create with zero: %v", err)
	}
	m, err := b.MountPlan(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	if err != nil || m.FsType != "nfs" || m.Source != "192.0.2.10:/berth-"+scopeA || !slices.Contains(m.Options, "vers=4.1") {
		t.Errorf("plan %v, %v", m, err)
	}
	if _, err := b.MountPlan(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeB}); status.Code(err) != codes.NotFound {
		t.Errorf("plan of no scope: %v", err)
	}
}

// TestShared has scopes in one file system: only the proxy enforces limits.
func TestShared(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, directories)
	if opened.Enforcement != pb.Enforcement_COOPERATIVE || slices.Contains(opened.Capabilities, pb.Capability_PER_SCOPE_MOUNT) {
		t.Errorf("opened as %v", opened)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(1<<20)))
	b.Must(b.Write(scopeA+"/data", 8<<20)) // nothing stops it
	if s, err := b.Get(scopeA); err != nil || s.Limit.GetBytes() != 1<<20 || s.GetUsedBytes() < 8<<20 {
		t.Errorf("scope %v, %v", s, err)
	}
	if h := b.State(); h.State != pb.HealthReport_HEALTHY || h.Metadata["mode"] != shared {
		t.Errorf("health %v", h)
	}
	b.Rises(pb.PerformanceSample_THIS_VOLUME)
}

// TestDelete checks that a scope that is not empty is kept, also if it is not mounted.
func TestDelete(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	b.Must(b.Create(scopeA, nil))
	b.Must(b.Write(scopeA+"/data", 8<<20))
	if err := b.Delete(scopeA); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete: %v", err)
	}
	// On another node the scope is not mounted, and the array reports that it is not empty.
	_, err := b.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "elsewhere", MountPath: t.TempDir(), OptionsJson: b.Simulator.PluginOptions()})
	b.Must(err)
	_, err = b.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "elsewhere", Scope: scopeA})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "not mounted here") {
		t.Errorf("delete elsewhere: %v", err)
	}
	for range 2 {
		_, err = b.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "elsewhere", Scope: scopeB})
		b.Must(err)
		_, err = b.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "elsewhere", Scope: scopeB})
		b.Must(err)
	}
	b.Must(os.Remove(b.Simulator.Tree.Path(scopeA + "/data")))
	b.Must(b.Delete(scopeA))
	b.Must(b.Delete(scopeA))
	if _, err := b.Get(scopeA); status.Code(err) != codes.NotFound {
		t.Errorf("get: %v", err)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(4<<20))) // which the array has kept
	b.Refused(scopeA+"/data", 8<<20)
}

// TestMountPoint checks that even root cannot write to a mount point before it is mounted.
func TestMountPoint(t *testing.T) {
	i := simulatortest.Image(t)
	m, err := driver.OpenMount(i.Mount)
	if err != nil {
		t.Fatal(err)
	}
	v := &own{Mount: m}
	for range 2 {
		if err := v.place(scopeA); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = v.seal(scopeA, false) }()
	if err := os.WriteFile(filepath.Join(i.Mount, scopeA, "lost"), nil, 0o644); !errors.Is(err, unix.EPERM) {
		t.Errorf("written to a bare mount point: %v", err)
	}
	at := filepath.Join(i.Mount, scopeA)
	if err := unix.Mount("scope", at, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if yes, err := v.mounted(scopeA); !yes || err != nil {
		t.Errorf("mounted: %v, %v", yes, err)
	}
	if err := v.unplace(scopeA); err != nil {
		t.Errorf("unplace a mounted scope: %v", err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	if yes, err := v.mounted(scopeA); yes || err != nil {
		t.Errorf("mounted: %v, %v", yes, err)
	}
	for range 2 {
		if err := v.unplace(scopeA); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mount point is left: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	b.Secrets()
}

// TestTrouble checks failures between the plugin and the array.
func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	b.Trouble()
	t.Run("role", func(t *testing.T) {
		defer b.Simulator.Inject(simulator.Fault{Method: "POST", Path: "/api/2", Status: 403})()
		if err := b.Create(scopeA, nil); status.Code(err) != codes.PermissionDenied {
			t.Errorf("create: %v", err)
		}
	})
	t.Run("token", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		b.Must(os.WriteFile(file, []byte("T-not-the-one"), 0o600))
		_, err := b.OpenAs("w", map[string]any{"token_file": file})
		if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "T-not-the-one") {
			t.Errorf("open: %v", err)
		}
	})
}

// TestSessionsEnd uses sessions of two seconds.
func TestSessionsEnd(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{TokenLife: 2 * time.Second}, map[string]any{"eradicate": true})
	b.SessionsEnd("/api/login")
}

// TestPages has more scopes than three pages of the array, and other file systems.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{PageSize: 2}, nil)
	b.Must(b.Create(scopeA, nil))
	b.Must(b.Delete(scopeA)) // destroyed, and kept by the array
	b.Lists(7, true)
}

func TestPerformance(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	b.Rises(pb.PerformanceSample_WHOLE_CLUSTER)
}

func TestWrongOptions(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, purestorage.New, simulator.Options{}, nil)
	b.Refuses(map[string]simulatortest.Wrong{
		"address":    {Options: map[string]any{"data_address": ""}, Code: codes.InvalidArgument, Text: "data_address"},
		"filesystem": {Options: map[string]any{"mode": shared}, Code: codes.InvalidArgument, Text: "filesystem"},
		"both":       {Options: map[string]any{"filesystem": "berth"}, Code: codes.InvalidArgument, Text: "filesystem"},
		"other":      {Options: map[string]any{"mode": shared, "filesystem": "other"}, Code: codes.FailedPrecondition, Text: `"other"`},
		"mode":       {Options: map[string]any{"mode": "both"}, Code: codes.InvalidArgument, Text: "mode"},
		"token":      {Options: map[string]any{"token": "secret"}, Code: codes.InvalidArgument, Text: "token"},
	})
	b.Simulator.Set("versions", "1.8,1.12")
	if _, err := b.OpenAs("w", nil); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "1.12") {
		t.Errorf("an old array: %v", err)
	}
}
