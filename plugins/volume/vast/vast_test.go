package main

import (
	"encoding/json"
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
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/internal/simulator/vast"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const scopeA = "0123456789abcdef0123456789abcdef"

// TestConformance runs the suite on the simulator on btrfs, with tokens that expire often and lists
// that are always paged.
func TestConformance(t *testing.T) {
	simulatortest.Conform(t, vast.New, simulator.Options{PageSize: 2, TokenLife: 3 * time.Second, Settings: map[string]string{"pages": "always"}})
}

func TestLive(t *testing.T) { simulatortest.Live(t, "VAST") }

// TestRequests compares the requests to a cluster with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{JobTime: -1}, map[string]any{"file_limits": true})
	step := b.Steps(regexp.MustCompile(`\.berth-deleted-[0-9a-f]{32}`),
		regexp.MustCompile(`"(usable_capacity_bytes|free_usable_capacity|physical_space_in_use|(rd|wr)_\w+)":[0-9.e+]+`))
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	files := int64(1000)
	step("limit", b.Limit(scopeA, &pb.Limit{Inodes: &files}))
	_, err := b.Get(scopeA)
	step("get", err)
	b.Must(os.MkdirAll(b.Simulator.Tree.Path(scopeA+"/folder/below"), 0o755))
	step("trash", deleteTree(b, scopeA+"/folder"))
	step("delete", b.Delete(scopeA))
	_, err = b.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("health", err)
}

func deleteTree(b *simulatortest.Harness, tree string) error {
	stream, err := b.DeleteTree(b.Context(), &pb.TreeRef{Volume: "v", Path: tree})
	for err == nil {
		var p *pb.Progress
		if p, err = stream.Recv(); err == nil && p.Finished {
			return nil
		}
	}
	return err
}

// TestLimitRefusesBytes checks the way from a REST call to a failing write.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, vast.New, simulator.Options{JobTime: 500 * time.Millisecond}, nil)
	if opened.Enforcement != pb.Enforcement_DELAYED {
		t.Errorf("opened as %v", opened)
	}
	if s := b.Enforces(scopeA); !s.Exact {
		t.Errorf("scope %v", s)
	}
}

// TestScopeWithoutQuota checks a directory that was not created by the plugin.
func TestScopeWithoutQuota(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	b.Must(os.Mkdir(b.Simulator.Tree.Path(scopeA), 0o755))
	b.Must(b.Write(scopeA+"/old", 1<<20))
	s, err := b.Get(scopeA)
	if err != nil || s.Limit.Bytes != nil || s.UsedBytes != nil {
		t.Errorf("scope %v, %v", s, err)
	}
	b.Must(b.Limit(scopeA, simulatortest.Bytes(16<<20)))
	b.Refused(scopeA+"/new", 32<<20)
}

// TestTrash checks a tree that the cluster deletes, and one that it does not.
func TestTrash(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	if !slices.Contains(opened.Capabilities, pb.Capability_DELETE) {
		t.Fatalf("opened as %v", opened)
	}
	b.Must(b.Create(scopeA, nil))
	fill := func() {
		b.Must(os.MkdirAll(b.Simulator.Tree.Path(scopeA+"/a/b/c"), 0o755))
		b.Must(b.Write(scopeA+"/a/b/c/file", 1<<20))
		b.Must(os.WriteFile(b.Simulator.Tree.Path(scopeA+"/outside"), []byte("stays"), 0o644))
		_ = os.Remove(b.Simulator.Tree.Path(scopeA + "/link"))
		b.Must(os.Symlink("outside", b.Simulator.Tree.Path(scopeA+"/link")))
	}
	empty := func() {
		t.Helper()
		for _, tree := range []string{"/a/b", "/link", "/absent", "/a"} {
			b.Must(deleteTree(b, scopeA+tree))
		}
		left, err := filepath.Glob(b.Simulator.Tree.Path(scopeA + "/*"))
		hidden, herr := filepath.Glob(b.Simulator.Tree.Path(scopeA + "/.*"))
		if err != nil || herr != nil || len(left) != 1 || filepath.Base(left[0]) != "outside" || len(hidden) > 0 {
			t.Errorf("left are %v %v", left, hidden)
		}
	}
	fill()
	b.Simulator.Forget()
	empty()
	if got := b.Asked("delete_folder"); len(got) != 2 {
		t.Errorf("the cluster got requests for %v, want two folders", got)
	}
	b.Simulator.Set("trash", "disabled") // after the volume was opened
	fill()
	empty()
	if again := b.Open(nil); slices.Contains(again.Capabilities, pb.Capability_DELETE) {
		t.Errorf("opened again as %v", again)
	}
	if h := b.State(); !strings.Contains(h.Metadata["trash"], "trash folder disabled") || h.State != pb.HealthReport_HEALTHY {
		t.Errorf("health %v", h)
	}
	b.Simulator.Set("trash", "")
	if again := b.Open(nil); !slices.Contains(again.Capabilities, pb.Capability_DELETE) {
		t.Errorf("opened at last as %v", again)
	}
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	b.Secrets()
}

// TestNoQuotas checks a role without permission to set quotas.
func TestNoQuotas(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, vast.New, simulator.Options{Settings: map[string]string{"quota": "refused"}}, nil)
	b.Limitless(opened, "permission")
	b.Simulator.Set("quota", "")
	if again := b.Open(nil); again.Enforcement != pb.Enforcement_DELAYED {
		t.Errorf("opened again as %v", again)
	}
}

func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	b.Trouble()
	b.Simulator.Set("state", "DEGRADED")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "DEGRADED") {
		t.Errorf("health: %v", h)
	}
}

// TestRefresh invalidates only the access token: the refresh token is used, not the password.
func TestRefresh(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	b.Refreshes(simulator.Fault{Status: 403, Body: `{"detail": "Token is invalid or expired"}`}, "/token/", "/api/v1/token/refresh/")
}

func TestOptions(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	options := func(o map[string]any) error {
		for k, v := range map[string]any{"url": b.Simulator.URL, "ca_file": b.Simulator.CAFile, "path": "/berth"} {
			o[k] = v
		}
		raw, err := json.Marshal(o)
		b.Must(err)
		_, err = b.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "w", MountPath: b.Simulator.Mount(), OptionsJson: string(raw)})
		return err
	}
	token := b.Simulator.Setting("token_file")
	if err := options(map[string]any{"token_file": token}); err != nil {
		t.Errorf("with a token: %v", err)
	}
	for name, o := range map[string]map[string]any{
		"both":        {"token_file": token, "username": "berth"},
		"neither":     {},
		"no password": {"username": "berth"},
	} {
		if err := options(o); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.OpenAs("w", map[string]any{"tenant": "other"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another tenant: %v", err)
	}
}

// TestPages has more quotas than a page. Their limits are part of the list.
func TestPages(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{PageSize: 2, JobTime: -1}, nil)
	b.Lists(5, true)
}

func TestPerformance(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, vast.New, simulator.Options{}, nil)
	b.Rises(pb.PerformanceSample_WHOLE_CLUSTER)
}
