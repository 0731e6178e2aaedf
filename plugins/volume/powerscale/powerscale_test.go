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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/powerscale"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const (
	scopeA = "0123456789abcdef0123456789abcdef"
	scopeB = "fedcba9876543210fedcba9876543210"
)

// TestConformance runs the suite on the simulator on btrfs, with small pages and with the API of
// older releases.
func TestConformance(t *testing.T) {
	for name, o := range map[string]simulator.Options{
		"pages": {PageSize: 2},
		"old":   {Settings: map[string]string{"api": "6"}},
	} {
		t.Run(name, func(t *testing.T) { simulatortest.Conform(t, powerscale.New, o) })
	}
}

// TestLive runs the suite against a cluster, see docs/storage/powerscale.md.
func TestLive(t *testing.T) { simulatortest.Live(t, "POWERSCALE") }

// TestRequests compares the requests to a cluster with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	step := b.Steps(regexp.MustCompile(`"(value|time)":\d+`), regexp.MustCompile(`"(in|out|operation_rate|time_avg)":[-+.e\d]+`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	step("unlimited", b.Create(scopeB, nil))
	step("limit", b.Limit(scopeA, simulatortest.Bytes(64<<20)))
	step("lift", b.Limit(scopeA, nil))
	_, err := b.Get(scopeA)
	step("get", err)
	b.List()
	step("list", nil)
	step("delete", b.Delete(scopeA))
	_, err = b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
	_, err = b.Performance(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("performance", err)
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	for _, api := range []string{"16", "6"} {
		t.Run("api "+api, func(t *testing.T) {
			b, opened := simulatortest.NewHarness(t, powerscale.New, simulator.Options{Settings: map[string]string{"api": api}}, nil)
			if opened.Enforcement != pb.Enforcement_HARD || slices.Contains(opened.Capabilities, pb.Capability_QUOTA_INODES) {
				t.Errorf("opened as %v", opened)
			}
			if s := b.Enforces(scopeA); !s.Exact || s.GetUsedInodes() != 1 {
				t.Errorf("scope %v", s)
			}
			if err := b.Create(scopeB, simulatortest.Bytes(0)); status.Code(err) != codes.InvalidArgument || b.Simulator.Tree.IsDir(scopeB) {
				t.Errorf("create with zero: %v", err)
			}
		})
	}
}

// TestUnlicensed checks a cluster without SmartQuotas: no limits, and a reason.
func TestUnlicensed(t *testing.T) {
	for _, licence := range []string{"Unlicensed", "Expired", "Evaluation Expired"} {
		t.Run(licence, func(t *testing.T) {
			b, opened := simulatortest.NewHarness(t, powerscale.New, simulator.Options{Settings: map[string]string{"licence": licence}}, map[string]any{"usage_max_age_s": 0})
			b.Limitless(opened, "SmartQuotas is "+licence)
			b.Must(b.Create(scopeA, nil))
			b.Must(b.Write(scopeA+"/data", 8<<20))
			s, err := b.Get(scopeA)
			if err != nil || s.GetUsedBytes() < 8<<20 { // by a walk
				t.Errorf("scope %v, %v", s, err)
			}
			b.Simulator.Set("licence", "Evaluation")
			if h := b.State(); !strings.Contains(h.Reason, "open it again") {
				t.Errorf("health %v", h)
			}
			if again := b.Open(nil); again.Enforcement != pb.Enforcement_HARD {
				t.Errorf("opened again as %v", again)
			}
			b.Must(b.Limit(scopeA, simulatortest.Bytes(16<<20))) // a scope that was created without a quota
			b.Refused(scopeA+"/more", 16<<20)
		})
	}
}

// TestLicenceEnds checks a license that expires while the volume is open.
func TestLicenceEnds(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	b.Simulator.Set("licence", "Expired")
	if err := b.Create(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "not licensed") {
		t.Errorf("create: %v", err)
	}
	if b.Simulator.Tree.IsDir(scopeA) {
		t.Error("half a scope is left")
	}
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "Expired") {
		t.Errorf("health %v", h)
	}
}

// TestScanWaits checks that usage is not marked as exact until the cluster has scanned the
// directory.
func TestScanWaits(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{Settings: map[string]string{"scan": "waiting"}}, nil)
	b.Must(b.Create(scopeA, simulatortest.Bytes(64<<20)))
	b.Must(b.Write(scopeA+"/data", 8<<20))
	s, err := b.Get(scopeA)
	if err != nil || s.Exact || s.Limit.GetBytes() != 64<<20 {
		t.Errorf("scope %v, %v", s, err)
	}
	b.Simulator.Set("scan", "")
	if s, err := b.Get(scopeA); err != nil || !s.Exact || s.GetUsedBytes() < 8<<20 {
		t.Errorf("scope %v, %v", s, err)
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	b.Secrets()
}

// TestTrouble checks failures between the plugin and the cluster.
func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	b.Trouble()
	t.Run("privilege", func(t *testing.T) {
		defer b.Simulator.Inject(simulator.Fault{Path: "/platform/8/quota", Status: 403})()
		if err := b.Create(scopeA, nil); status.Code(err) != codes.PermissionDenied {
			t.Errorf("create: %v", err)
		}
	})
}

// TestSessionsEnd uses sessions of two seconds.
func TestSessionsEnd(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{TokenLife: 2 * time.Second}, nil)
	b.SessionsEnd("/session")
}

// TestPages has more scopes than three pages of the cluster.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{PageSize: 2}, nil)
	b.Must(os.Mkdir(filepath.Join(b.Simulator.Mount(), "other"), 0o755))
	for _, s := range b.Lists(7, true) {
		if s.UsedBytes == nil {
			t.Errorf("listed as %v", s)
		}
	}
}

// TestDelete checks that a scope that is not empty is kept, with its limit.
func TestDelete(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Must(b.Write(scopeA+"/data", 1<<20))
	if err := b.Delete(scopeA); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("delete: %v", err)
	}
	b.Refused(scopeA+"/more", 32<<20)
	b.Must(errors.Join(os.Remove(b.Simulator.Tree.Path(scopeA+"/data")), os.Remove(b.Simulator.Tree.Path(scopeA+"/more"))))
	b.Must(b.Delete(scopeA))
	b.Must(b.Delete(scopeA))
	b.Must(b.Create(scopeA, nil)) // the previous limit must be gone
	b.Must(b.Write(scopeA+"/data", 32<<20))
}

func TestPerformance(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{}, nil)
	b.Rises(pb.PerformanceSample_WHOLE_CLUSTER)
}

func TestWrongOptions(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, powerscale.New, simulator.Options{Settings: map[string]string{"api": "6"}}, nil)
	b.Refuses(map[string]simulatortest.Wrong{
		"path":     {Options: map[string]any{"path": "/ifs/data/other"}, Code: codes.FailedPrecondition, Text: "/ifs/data/other"},
		"relative": {Options: map[string]any{"path": "data"}, Code: codes.InvalidArgument, Text: "path"},
		"measure":  {Options: map[string]any{"measure": "applogicalsize"}, Code: codes.InvalidArgument, Text: "measure"},
		"unknown":  {Options: map[string]any{"measure": "weight"}, Code: codes.InvalidArgument, Text: "measure"},
		"password": {Options: map[string]any{"password": "secret"}, Code: codes.InvalidArgument, Text: "password"},
	})
}
