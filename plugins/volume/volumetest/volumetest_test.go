package volumetest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

var vfs string

func TestMain(m *testing.M) {
	if lie := os.Getenv("VOLUMETEST_LIE"); lie != "" {
		volume.Serve(&liar{lie: lie, scopes: map[string]*pb.Scope{}})
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "volumetest")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		vfs = filepath.Join(dir, "vfs")
		if out, err := exec.Command("go", "build", "-o", vfs, "../vfs").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build plugin: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func TestVFS(t *testing.T) {
	volumetest.Test(t, volumetest.Plugin{Path: vfs, Options: `{"usage_max_age_s": 0}`})
}

// TestMisdeedsAreCaught proves that the suite can fail.
func TestMisdeedsAreCaught(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for lie, only := range map[string][]string{
		"no-scope-capability": {"open"},
		"enforces-nothing":    {"open"},
		"half-the-disk":       {"capacity"},
		"forgets":             {"kill", "limit"},
		"zero-is-none":        {"limit"},
		"no-directory":        {"scope-life"},
		"deletes-all":         {"scope-not-empty"},
		"any-name":            {"scope-names"},
		"any-option":          {"open-options"},
		"resets-limit":        {"scope-idempotent"},
		"silent-stub":         {"unimplemented"},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			p := volumetest.Plugin{Path: self, Env: []string{"VOLUMETEST_LIE=" + lie}}
			err := volumetest.Run(t.Context(), p, only, func(r volumetest.Result) {
				if r.Outcome != volumetest.Failed || r.Detail == "" {
					t.Errorf("%s: %s (%s), want a failure", r.Check.Name, r.Outcome, r.Detail)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownCheck(t *testing.T) {
	if err := volumetest.Run(t.Context(), volumetest.Plugin{Path: vfs}, []string{"nonsense"}, func(volumetest.Result) {}); err == nil {
		t.Error("a check that does not exist was run")
	}
}

func TestChecksAreDocumented(t *testing.T) {
	var names []string
	for _, c := range volumetest.Checks() {
		if c.Name == "" || c.Want == "" || slices.Contains(names, c.Name) {
			t.Errorf("check %q has no text or a name used twice", c.Name)
		}
		names = append(names, c.Name)
	}
}

// liar is a plugin that keeps its scopes in memory and does one thing wrong.
type liar struct {
	pb.UnimplementedVolumeServer
	lie    string
	mount  string
	scopes map[string]*pb.Scope
}

func (l *liar) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Vendor: "Liar", Backend: "liar", Version: "1"}, nil
}

func (l *liar) OpenVolume(_ context.Context, q *pb.OpenVolumeRequest) (*pb.OpenVolumeResponse, error) {
	if q.OptionsJson != "" && l.lie != "any-option" {
		return nil, status.Error(codes.InvalidArgument, q.OptionsJson)
	}
	l.mount = q.MountPath
	r := &pb.OpenVolumeResponse{
		Capabilities: []pb.Capability{pb.Capability_SCOPE, pb.Capability_QUOTA_BYTES, pb.Capability_CAPACITY},
		Enforcement:  pb.Enforcement_COOPERATIVE,
	}
	switch l.lie {
	case "no-scope-capability":
		r.Capabilities = r.Capabilities[1:]
	case "enforces-nothing":
		r.Enforcement = pb.Enforcement_NONE
	}
	return r, nil
}

func (l *liar) Capacity(context.Context, *pb.VolumeRef) (*pb.CapacityReport, error) {
	return &pb.CapacityReport{TotalBytes: 1 << 40, UsedBytes: 1, AvailableBytes: 1, AsOfUnixMs: 1}, nil
}

func (l *liar) Performance(context.Context, *pb.VolumeRef) (*pb.PerformanceSample, error) {
	if l.lie == "silent-stub" {
		return &pb.PerformanceSample{}, nil
	}
	return nil, status.Error(codes.Unimplemented, "no")
}

func (l *liar) CreateScope(_ context.Context, q *pb.ScopeRequest) (*pb.Scope, error) {
	if len(q.Scope) != 32 && l.lie != "any-name" {
		return nil, status.Error(codes.InvalidArgument, "name")
	}
	s := l.scopes[q.Scope]
	if s == nil || l.lie == "resets-limit" {
		s = &pb.Scope{Scope: q.Scope, Path: q.Scope, Limit: q.Limit}
		l.scopes[q.Scope] = s
	}
	if l.lie != "no-directory" {
		_ = os.MkdirAll(filepath.Join(l.mount, q.Scope), 0o755)
	}
	return s, nil
}

func (l *liar) GetScope(_ context.Context, q *pb.ScopeRef) (*pb.Scope, error) {
	if s := l.scopes[q.Scope]; s != nil {
		return s, nil
	}
	return nil, status.Error(codes.NotFound, "scope")
}

func (l *liar) SetScopeLimit(_ context.Context, q *pb.ScopeRequest) (*pb.Scope, error) {
	s := l.scopes[q.Scope]
	s.Limit = q.Limit
	if l.lie == "zero-is-none" && q.Limit.GetBytes() == 0 {
		s.Limit = nil
	}
	return s, nil
}

func (l *liar) DeleteScope(_ context.Context, q *pb.ScopeRef) (*pb.DeleteScopeResponse, error) {
	delete(l.scopes, q.Scope)
	_ = os.RemoveAll(filepath.Join(l.mount, q.Scope))
	return &pb.DeleteScopeResponse{}, nil
}
