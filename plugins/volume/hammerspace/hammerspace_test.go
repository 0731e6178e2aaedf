package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/hammerspace"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const scopeA = "0123456789abcdef0123456789abcdef"

// TestConformance runs the suite on the simulator on btrfs, with sessions that end often.
func TestConformance(t *testing.T) {
	simulatortest.Conform(t, hammerspace.New, simulator.Options{TokenLife: 3 * time.Second})
}

func TestLive(t *testing.T) { simulatortest.Live(t, "HAMMERSPACE") }

// TestRequests compares the requests to an Anvil with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{JobTime: -1}, nil)
	step := b.Steps(regexp.MustCompile(`"capacity":{[^}]*}`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	step("limit", b.Limit(scopeA, nil))
	_, err := b.Get(scopeA)
	step("get", err)
	b.List()
	step("list", nil)
	step("delete", b.Delete(scopeA))
	_, err = b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{JobTime: 500 * time.Millisecond}, nil)
	if opened.Enforcement != pb.Enforcement_DELAYED || slices.Contains(opened.Capabilities, pb.Capability_QUOTA_INODES) {
		t.Errorf("opened as %v", opened)
	}
	if s := b.Enforces(scopeA); s.GetUsedInodes() == 0 {
		t.Errorf("scope %v", s)
	}
	if err := b.Delete(scopeA); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete with files: %v", err)
	}
	if st, err := os.Stat(b.Simulator.Tree.Path(scopeA)); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the share's directory is %v, %v", st, err)
	}
}

func TestTasksFail(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	b.Simulator.Jobs.FailNext(errors.New("no data sphere node is up"))
	if err := b.Create(scopeA, nil); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "no data sphere node") {
		t.Errorf("create: %v", err)
	}
	b.Must(b.Create(scopeA, nil)) // the name is free again
	b.Simulator.Jobs.FailNext(errors.New("no data sphere node is up"))
	if err := b.Limit(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != codes.Internal {
		t.Errorf("limit: %v", err)
	}
	b.Simulator.Set("resize", "ignored")
	if err := b.Limit(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "kept the old one") {
		t.Errorf("a limit that is not kept: %v", err)
	}
}

// TestBeingMade checks a share that another proxy is creating at the same moment.
func TestBeingMade(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{JobTime: time.Second}, nil)
	b.Simulator.Forget()
	defer b.Simulator.Inject(simulator.Fault{Method: "POST", Path: shares, Lost: true, Times: 1})()
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	looked := slices.Contains(b.Asked(tasks), tasks)
	if s, err := b.Get(scopeA); err != nil || s.GetLimit().GetBytes() != 16<<20 || !looked {
		t.Errorf("scope %v, %v; the tasks were looked at: %v", s, err, looked)
	}
}

// TestKilledMidway checks a directory whose share a task is still creating.
func TestKilledMidway(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{JobTime: time.Second, Settings: map[string]string{"order": "directory first"}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for !b.Simulator.Tree.IsDir(scopeA) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := b.CreateScope(ctx, &pb.ScopeRequest{Volume: "v", Scope: scopeA}); status.Code(err) != codes.Canceled {
		t.Fatalf("create: %v", err)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/data", 32<<20)
}

func TestPlainDirectory(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	b.Must(os.Mkdir(b.Simulator.Tree.Path(scopeA), 0o755))
	if _, err := b.Get(scopeA); status.Code(err) != codes.NotFound {
		t.Errorf("get: %v", err)
	}
	if err := b.Create(scopeA, nil); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "plain directory") {
		t.Errorf("create: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	b.Secrets()
	b.EchoJob()
}

func TestLicence(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	b.Simulator.Set("licence", "none")
	if err := b.Create(scopeA, nil); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "no valid license") {
		t.Errorf("create: %v", err)
	}
	b.Simulator.Set("licence", "")
	b.Must(b.Create(scopeA, nil))
}

func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	b.Trouble()
	b.Simulator.Set("health", "DEGRADED")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "DEGRADED") {
		t.Errorf("health: %v", h)
	}
}

func TestList(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{JobTime: -1}, nil)
	for _, s := range b.Lists(3, true) {
		if s.UsedBytes == nil {
			t.Errorf("listed as %v", s)
		}
	}
}

func TestMountPlan(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, hammerspace.New, simulator.Options{}, nil)
	if !slices.Contains(opened.Capabilities, pb.Capability_PER_SCOPE_MOUNT) {
		t.Errorf("opened as %v", opened)
	}
	b.Must(b.Create(scopeA, nil))
	m, err := b.MountPlan(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	if err != nil || m.Source != "portal.example:/"+scopeA || m.FsType != "nfs" {
		t.Errorf("plan %v, %v", m, err)
	}
	if again := b.Open(map[string]any{"portal": ""}); slices.Contains(again.Capabilities, pb.Capability_PER_SCOPE_MOUNT) {
		t.Errorf("opened without a portal as %v", again)
	}
}
