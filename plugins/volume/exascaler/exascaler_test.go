package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/exascaler"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// blocks matches sizes that differ between runs.
var blocks = regexp.MustCompile(`(?m)^((exa-|filesystem_summary:)\S*) .*$`)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const (
	scopeA = "0123456789abcdef0123456789abcdef"
	scopeB = "fedcba9876543210fedcba9876543210"
)

// TestConformance runs the suite on the simulator on btrfs.
func TestConformance(t *testing.T) { simulatortest.Conform(t, exascaler.New, simulator.Options{}) }

// TestLive runs the suite on a Lustre client, see docs/storage/exascaler.md.
func TestLive(t *testing.T) { simulatortest.Live(t, "EXASCALER") }

// TestParseQuota parses published outputs of lfs quota.
func TestParseQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want quota
	}{
		"quiet": {"  /mnt/lustre 1200 0 1000 - 3 0 0 -\n", quota{kib: 1200, maxKiB: 1000, inodes: 3, exact: true}},
		"wrapped": {
			"Disk quotas for prj 2228473301 (pid 2228473301):\n     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace\n/a/long/name of it\n                1225350212       0       0       -  714982       0 1048576       -\npid 2228473301 is using default block quota setting\n",
			quota{kib: 1225350212, inodes: 714982, maxInodes: 1048576, exact: true},
		},
		"over": {"/lustre 4101* 4000 4096 6d23h59m57s 3508976* 2936012 2936012 none\n", quota{kib: 4101, maxKiB: 4096, inodes: 3508976, maxInodes: 2936012, exact: true}},
		"inexact": {
			"/lustre [8192] 0 10240 - 5 0 0 -\nSome errors happened when getting quota info. Some devices may be not working or deactivated. The data in \"[]\" is inaccurate.\n",
			quota{kib: 8192, maxKiB: 10240, inodes: 5},
		},
		"inexact and above the limit": {"/lustre [10240]* 0 10240 - [5] 0 0 -\n", quota{kib: 10240, maxKiB: 10240, inodes: 5}},
		"newer head":                  {"Filesystem    used   bquota  blimit  bgrace   files   iquota  ilimit  igrace\n     /home   2048       0k     50       -     511        0 1000000       -\n", quota{kib: 2048, maxKiB: 50, inodes: 511, maxInodes: 1000000, exact: true}},
	} {
		if got, err := parseQuota(tc.text); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tc.want)
		}
	}
	for _, text := range []string{"", "/lustre 1G 0 2G - 1 0 0 -\n", "Unexpected quotactl error\n"} {
		if got, err := parseQuota(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestRequests compares the calls of lfs with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, exascaler.New, simulator.Options{}, map[string]any{"file_limits": true})
	step := b.Steps(blocks)
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	step("unlimited", b.Create(scopeB, nil))
	files := int64(1000)
	step("limit", b.Limit(scopeA, &pb.Limit{Inodes: &files}))
	step("lift", b.Limit(scopeA, nil))
	step("delete", b.Delete(scopeA))
}

// TestLimitRefusesBytes checks the way from the program to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, exascaler.New, simulator.Options{}, nil)
	if opened.Enforcement != pb.Enforcement_DELAYED || slices.Contains(opened.Capabilities, pb.Capability_METRICS) {
		t.Errorf("opened as %v", opened)
	}
	if s := b.Enforces(scopeA); !s.Exact || s.GetUsedInodes() != 1 {
		t.Errorf("scope %v", s)
	}
	if err := b.Create(scopeB, simulatortest.Bytes(0)); status.Code(err) != codes.InvalidArgument || b.Simulator.Tree.IsDir(scopeB) {
		t.Errorf("create with zero: %v", err)
	}
}

// TestLacking checks a volume without quotas: no limits, usage by walking, and the reason.
func TestLacking(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]string
		more     map[string]any
		reason   string
	}{
		"feature":  {map[string]string{"project": "off"}, nil, "Operation not supported"},
		"program":  {nil, map[string]any{"lfs": "/nowhere/lfs"}, "program /nowhere/lfs (option lfs) does not exist"},
		"enforced": {nil, map[string]any{"enforced": false}, "only count"},
	} {
		t.Run(name, func(t *testing.T) {
			more := map[string]any{"usage_max_age_s": 0}
			for k, v := range tc.more {
				more[k] = v
			}
			b, opened := simulatortest.NewHarness(t, exascaler.New, simulator.Options{Settings: tc.settings}, more)
			b.Limitless(opened, tc.reason)
			b.Must(b.Create(scopeA, nil))
			b.Must(b.Write(scopeA+"/data", 8<<20))
			if s, err := b.Get(scopeA); err != nil || s.GetUsedBytes() < 8<<20 {
				t.Errorf("scope %v, %v", s, err)
			}
		})
	}
}

// TestTrouble checks failures of servers.
func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, exascaler.New, simulator.Options{}, nil)
	b.Must(b.Create(scopeA, simulatortest.Bytes(64<<20)))
	b.Simulator.Set("ost", "inactive")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "OST0001: inactive device") {
		t.Errorf("health %v", h)
	}
	if s, err := b.Get(scopeA); err != nil || s.Exact || s.Limit.GetBytes() != 64<<20 {
		t.Errorf("scope %v, %v", s, err)
	}
	b.Simulator.Set("ost", "")
	for text, want := range map[string]codes.Code{
		"Input/output error":                            codes.Unavailable,
		"Resource temporarily unavailable":              codes.Unavailable,
		"Cannot send after transport endpoint shutdown": codes.Unavailable,
		"Operation not permitted":                       codes.PermissionDenied,
		"Something new":                                 codes.Internal,
	} {
		b.Simulator.Set("fail", "setquota: "+text)
		if err := b.Limit(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != want || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		if err := b.Create(scopeB, simulatortest.Bytes(1<<20)); status.Code(err) != want || b.Simulator.Tree.IsDir(scopeB) {
			t.Errorf("create, %s: %v, or half a scope is left", text, err)
		}
	}
	b.Simulator.Set("fail", "")
	if s, err := b.Get(scopeA); err != nil || !s.Exact || s.Limit.GetBytes() != 64<<20 {
		t.Errorf("scope %v, %v", s, err)
	}
	if h := b.State(); h.State != pb.HealthReport_HEALTHY {
		t.Errorf("health at last %v", h)
	}
	b.Simulator.Set("fail", "df: Inappropriate ioctl for device")
	if _, err := b.OpenAs("w", nil); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "is not a Lustre file system") {
		t.Errorf("opening another file system: %v", err)
	}
}

// TestNumbers checks that a recreated scope does not inherit the limit of the previous one.
func TestNumbers(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, exascaler.New, simulator.Options{}, nil)
	b.Must(b.Create(scopeA, simulatortest.Bytes(4<<20)))
	b.Must(b.Delete(scopeA))
	b.Must(b.Delete(scopeA))
	b.Must(b.Create(scopeA, nil))
	b.Must(b.Write(scopeA+"/data", 16<<20))
	seen := map[string]bool{}
	for range 20 {
		scope := simulator.Random()
		b.Must(b.Create(scope, simulatortest.Bytes(1<<20)))
	}
	for _, e := range b.Simulator.Exchanges() {
		if f := strings.Fields(e.Target); f[0] == "project" && f[1] == "-p" {
			seen[f[2]] = true
		}
	}
	if got := b.List(); len(got) != 21 || len(seen) != 21 {
		t.Errorf("%d scopes, %d numbers", len(got), len(seen))
	}
}
