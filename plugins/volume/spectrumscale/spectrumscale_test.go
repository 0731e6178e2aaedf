package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/internal/simulator/spectrumscale"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const scopeA = "0123456789abcdef0123456789abcdef"

// TestConformance runs the suite on the simulator on btrfs, with a GUI that does not refresh its
// filesets itself.
func TestConformance(t *testing.T) {
	simulatortest.Conform(t, spectrumscale.New, simulator.Options{PageSize: 2, JobTime: 10 * time.Millisecond, Settings: map[string]string{"accepted": "201", "lag": "1h"}})
}

func TestLive(t *testing.T) { simulatortest.Live(t, "SPECTRUMSCALE") }

// TestRequests compares the requests to a cluster with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{JobTime: -1}, map[string]any{"file_limits": true})
	step := b.Steps()
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	files := int64(1000)
	step("limit", b.Limit(scopeA, &pb.Limit{Inodes: &files}))
	_, err := b.Get(scopeA)
	step("get", err)
	b.List()
	step("list", nil)
	step("delete", b.Delete(scopeA))
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{}, nil)
	if opened.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened as %v", opened)
	}
	s := b.Enforces(scopeA)
	if !s.Exact {
		t.Errorf("scope %v", s)
	}
	b.Simulator.Set("indoubt", "2048") // KiB
	doubted, err := b.Get(scopeA)
	if err != nil || doubted.GetUsedBytes() != s.GetUsedBytes()+2<<20 || doubted.Exact {
		t.Errorf("scope in doubt %v, %v", doubted, err)
	}
	if err := b.Delete(scopeA); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete with files: %v", err)
	}
}

// TestJobsFail checks that a failed creation leaves nothing behind, and that an interrupted
// deletion is continued.
func TestJobsFail(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{}, nil)
	b.Simulator.Jobs.FailNext(errors.New("EFSSG0015C No space for a fileset."))
	if err := b.Create(scopeA, nil); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "EFSSG0015C") {
		t.Errorf("create: %v", err)
	}
	if b.Simulator.Tree.IsDir(scopeA) {
		t.Error("half a scope is left")
	}
	b.Must(b.Create(scopeA, nil))
	// The fileset was unlinked by the first job, and not deleted by the second.
	remove := b.Simulator.Inject(simulator.Fault{Method: http.MethodDelete, Path: "/scalemgmt/v2/filesystems/fs1/filesets/berth-" + scopeA, Skip: 1, Times: 1, Status: 500})
	if err := b.Delete(scopeA); status.Code(err) != codes.Internal {
		t.Errorf("delete: %v", err)
	}
	remove()
	if _, err := b.Get(scopeA); status.Code(err) != codes.NotFound {
		t.Errorf("get of an unlinked fileset: %v", err)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20))) // links it again
	b.Refused(scopeA+"/data", 32<<20)
}

func TestPlainDirectory(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{}, nil)
	b.Must(os.Mkdir(b.Simulator.Tree.Path(scopeA), 0o755))
	if _, err := b.Get(scopeA); status.Code(err) != codes.NotFound {
		t.Errorf("get: %v", err)
	}
	if err := b.Create(scopeA, nil); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "plain directory") {
		t.Errorf("create: %v", err)
	}
}

// TestLateGUI checks a fileset that the GUI has not read yet: another proxy created it, or this one
// before it was killed.
func TestLateGUI(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{Settings: map[string]string{"lag": "1h"}}, nil)
	defer b.Simulator.Inject(simulator.Fault{Path: "/scalemgmt/v2/refreshTask", Status: 500, Times: 1})()
	if err := b.Create(scopeA, nil); status.Code(err) != codes.Internal {
		t.Fatalf("create: %v", err)
	}
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/data", 32<<20)
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{}, nil)
	b.Secrets()
	b.EchoJob()
}

// TestNoQuotas checks file systems without limits, and the reasons.
func TestNoQuotas(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{}, nil)
	b.Without(map[string]string{"quota=off": "mmchfs -Q yes", "quota=perfileset": "--noperfileset-quota"})
	b.Open(nil)
	b.Simulator.Set("quota", "off") // after the volume was opened
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "limits are not enforced") {
		t.Errorf("health %v", h)
	}
}

func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{JobTime: 20 * time.Millisecond}, nil)
	b.Trouble()
	b.Simulator.Set("mount", "not mounted")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "not mounted") {
		t.Errorf("health: %v", h)
	}
	if _, err := b.OpenAs("w", map[string]any{"filesystem": "other"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another file system: %v", err)
	}
}

// TestPages has more filesets and quotas than a page.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, spectrumscale.New, simulator.Options{PageSize: 2, JobTime: -1}, nil)
	b.Lists(5, true)
}
