package main

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/internal/simulator/weka"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const scopeA = "0123456789abcdef0123456789abcdef"

// TestConformance runs the suite on the simulator on btrfs, with quotas that take a while and
// tokens that expire often.
func TestConformance(t *testing.T) {
	simulatortest.Conform(t, weka.New, simulator.Options{PageSize: 2, TokenLife: 5 * time.Second})
}

func TestLive(t *testing.T) { simulatortest.Live(t, "WEKA") }

// TestRequests compares the requests to a cluster with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{JobTime: -1}, nil)
	step := b.Steps(regexp.MustCompile(`"(total_budget|\w+_total|used_total_data)":\d+`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	step("limit", b.Limit(scopeA, nil))
	_, err := b.Get(scopeA)
	step("get", err)
	step("delete", b.Delete(scopeA))
	_, err = b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, weka.New, simulator.Options{JobTime: 500 * time.Millisecond}, nil)
	if opened.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened as %v", opened)
	}
	if s := b.Enforces(scopeA); !s.Exact {
		t.Errorf("scope %v", s)
	}
	most := simulatortest.Bytes(math.MaxInt64) // which means unlimited to the cluster
	if err := b.Limit(scopeA, most); status.Code(err) != codes.InvalidArgument {
		t.Errorf("limit: %v", err)
	}
	if err := b.Create(simulator.Random(), most); status.Code(err) != codes.InvalidArgument {
		t.Errorf("create: %v", err)
	}
}

// TestScopeWithoutQuota checks a directory that was not created by the plugin.
func TestScopeWithoutQuota(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Must(os.Mkdir(b.Simulator.Tree.Path(scopeA), 0o755))
	b.Must(b.Write(scopeA+"/old", 1<<20))
	s, err := b.Get(scopeA)
	if err != nil || s.Limit.Bytes != nil || s.UsedBytes != nil {
		t.Errorf("scope %v, %v", s, err)
	}
	if err := b.Limit(scopeA, simulatortest.Bytes(16<<20)); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "data service") {
		t.Errorf("limit of an uncounted directory: %v", err)
	}
	b.Simulator.Set("data_service", "on")
	b.Must(b.Limit(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/new", 32<<20)
}

func TestCountingFails(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Simulator.Jobs.FailNext(errors.New("out of memory"))
	if err := b.Create(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "could not count") {
		t.Errorf("create: %v", err)
	}
	if b.Simulator.Tree.IsDir(scopeA) {
		t.Error("half a scope is left")
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Secrets()
}

// TestNoQuotas checks clusters without limits, and the reasons.
func TestNoQuotas(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Without(map[string]string{"quota=refused": "role of the user", "version=4.2.18": "4.2.18"})
	if again := b.Open(nil); again.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened again as %v", again)
	}
}

func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Trouble()
	b.Simulator.Set("state", "rebuilding")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "rebuilding") {
		t.Errorf("health: %v", h)
	}
	if _, err := b.OpenAs("w", map[string]any{"filesystem": "other"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another file system: %v", err)
	}
	if _, err := b.OpenAs("w", map[string]any{"path": "/other"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another path: %v", err)
	}
}

// TestRefresh invalidates only the access token: the refresh token is used, not the password.
func TestRefresh(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Refreshes(simulator.Fault{Status: 401}, "/login", "/api/v2/login/refresh")
}

// TestPages has more quotas than a page. Their limits are part of the list.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{PageSize: 2, JobTime: -1}, nil)
	for _, s := range b.Lists(5, true) {
		if s.GetUsedBytes() != 0 {
			t.Errorf("listed as %v", s)
		}
	}
}

func TestPerformance(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, weka.New, simulator.Options{}, nil)
	b.Rises(pb.PerformanceSample_WHOLE_CLUSTER)
}
