package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/netapp"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const (
	scopeA = "0123456789abcdef0123456789abcdef"
	scopeB = "fedcba9876543210fedcba9876543210"
)

// TestConformance runs the suite on the simulator on btrfs, with jobs and without.
func TestConformance(t *testing.T) {
	for name, o := range map[string]simulator.Options{
		"jobs": {PageSize: 2},
		"sync": {Settings: map[string]string{"answers": "sync"}},
	} {
		t.Run(name, func(t *testing.T) { simulatortest.Conform(t, netapp.New, o) })
	}
}

// TestLive runs the suite against an array, see docs/storage/netapp.md.
func TestLive(t *testing.T) { simulatortest.Live(t, "NETAPP") }

// TestRequests compares the requests to an array with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{JobTime: -1}, map[string]any{"file_limits": true})
	step := b.Steps(regexp.MustCompile(`"(size|used|available)":\d+`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	files := int64(1000)
	step("limit", b.Limit(scopeA, &pb.Limit{Inodes: &files}))
	_, err := b.Get(scopeA)
	step("get", err)
	step("delete", b.Delete(scopeA))
	_, err = b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, netapp.New, simulator.Options{Settings: map[string]string{"lag": "300ms"}}, map[string]any{"file_limits": true})
	if opened.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened as %v", opened)
	}
	b.Enforces(scopeA)
	for _, l := range []*pb.Limit{simulatortest.Bytes(0), {Inodes: new(int64)}} {
		if err := b.Limit(scopeA, l); status.Code(err) != codes.InvalidArgument {
			t.Errorf("limit %v: %v", l, err)
		}
		if err := b.Create(scopeB, l); status.Code(err) != codes.InvalidArgument || b.Simulator.Tree.IsDir(scopeB) {
			t.Errorf("create with %v: %v", l, err)
		}
	}
}

// TestInactiveRules checks an array that stores a limit without enforcing it.
func TestInactiveRules(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{Settings: map[string]string{"activation": "restart"}}, nil)
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/data", 32<<20)
	b.Must(b.Limit(scopeA, simulatortest.Bytes(64<<20)))
	b.Must(b.Write(scopeA+"/data", 32<<20))

	b.Open(map[string]any{"manage_quotas": false})
	if err := b.Limit(scopeA, simulatortest.Bytes(80<<20)); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "manage_quotas") {
		t.Errorf("a limit that stays inactive: %v", err)
	}
}

// TestJobs checks an array that responds before a change is done: a job that is queued or paused
// has not ended.
func TestJobs(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{JobTime: 400 * time.Millisecond, Settings: map[string]string{"answers": "job"}}, nil)
	b.Enforces(scopeA)
	b.Simulator.Jobs.FailNext(errors.New("aggregate is offline"))
	if err := b.Create(scopeB, nil); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "aggregate is offline") {
		t.Errorf("create: %v", err)
	}
	if b.Simulator.Tree.IsDir(scopeB) {
		t.Error("half a scope is left")
	}
}

func TestQuotasRefused(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, netapp.New, simulator.Options{Settings: map[string]string{"quota": "refused"}}, nil)
	b.Limitless(opened, "not read-write")
	b.Simulator.Set("quota", "")
	defer b.Simulator.Inject(simulator.Fault{Method: "PATCH", Lost: true, Times: 1})() // they are on when the plugin checks again
	if again := b.Open(nil); again.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened again as %v", again)
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{Settings: map[string]string{"answers": "job"}}, nil)
	b.Secrets()
	b.EchoJob()
}

// TestTrouble checks failures between the plugin and the array.
func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{}, nil)
	b.Trouble()
	t.Run("unauthorized", func(t *testing.T) {
		defer b.Simulator.Inject(simulator.Fault{Status: 401})()
		err := b.Create(scopeA, nil)
		if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), b.Simulator.Password) {
			t.Errorf("create: %v", err)
		}
	})
	t.Run("job fails", func(t *testing.T) {
		b.Simulator.Jobs.FailNext(errors.New("aggregate is offline"))
		err := b.Create(scopeA, nil)
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "aggregate is offline") {
			t.Errorf("create: %v", err)
		}
		if b.Simulator.Tree.IsDir(scopeA) {
			t.Error("half a scope is left")
		}
	})
	t.Run("offline", func(t *testing.T) {
		b.Simulator.Set("state", "offline")
		defer b.Simulator.Set("state", "")
		if h := b.State(); h.State != pb.HealthReport_UNAVAILABLE || !strings.Contains(h.Reason, "offline") {
			t.Errorf("health: %v", h)
		}
	})
	if h := b.State(); h.State != pb.HealthReport_HEALTHY || h.Metadata["svm"] != "svm1" {
		t.Errorf("health at last: %v", h)
	}
}

func TestWrongOptions(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{}, nil)
	b.Refuses(map[string]simulatortest.Wrong{
		"volume":   {Options: map[string]any{"volume": "other"}, Code: codes.FailedPrecondition, Text: `"other"`},
		"svm":      {Options: map[string]any{"svm": "other"}, Code: codes.FailedPrecondition, Text: `"other"`},
		"user":     {Options: map[string]any{"username": "nobody"}, Code: codes.Unauthenticated, Text: "User is not authorized"},
		"http":     {Options: map[string]any{"url": "http://127.0.0.1"}, Code: codes.InvalidArgument, Text: "url"},
		"password": {Options: map[string]any{"password": "secret"}, Code: codes.InvalidArgument, Text: "password"},
		"ca":       {Options: map[string]any{"ca_file": "/dev/null"}, Code: codes.InvalidArgument, Text: "has no certificate"},
	})
}

// TestPages has more scopes than a page of the array.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{PageSize: 2}, nil)
	b.Lists(5, false)
}

func TestPerformance(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, netapp.New, simulator.Options{}, nil)
	if p := b.Rises(pb.PerformanceSample_THIS_VOLUME); p.WindowMs != 15000 {
		t.Errorf("performance %v", p)
	}
}
