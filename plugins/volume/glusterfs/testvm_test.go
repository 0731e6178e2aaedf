package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testvm/gluster"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// one is the cluster that all tests of this process share.
var one = vmtest.Product[*gluster.Cluster]{Make: gluster.Make}

func TestMain(m *testing.M) { one.Main(m) }

// site is the cluster and the plugin.
type site struct {
	*testing.T
	*gluster.Cluster
	program string
}

// cluster starts the cluster, or skips the test with the reason why it cannot.
func cluster(t *testing.T) site {
	t.Helper()
	return site{t, one.Get(t), vmtest.Program(t, "glusterfs", ".")}
}

// options returns the cluster's options with additional ones.
func (s site) options(more ...string) string {
	all := map[string]any{"gluster": s.Gluster, "usage_max_age_s": 0}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		s.Fatal(err)
	}
	return string(raw)
}

// timeouts sets the timeouts of the quotas until the end of the test.
func (s site) timeouts(seconds string) {
	s.Helper()
	if err := s.Timeouts(s.Context(), seconds); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.Timeouts(context.Background(), "0"); err != nil {
			s.Error(err)
		}
	})
}

// TestVMSuite runs the suite on a real GlusterFS.
func TestVMSuite(t *testing.T) {
	s := cluster(t)
	volumetest.Test(t, volumetest.Plugin{Path: s.program, Mount: s.Mount, Options: s.options(), Environment: volumetest.Environment{Names: true}})
}

const scopeA = "0123456789abcdef0123456789abcdef"

func create(t *testing.T, c *volume.Client, l *pb.Limit) {
	t.Helper()
	if _, err := c.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: l}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.DeleteScope(context.Background(), &pb.ScopeRef{Volume: "v", Scope: scopeA}); err != nil {
			t.Error(err)
		}
	})
}

// TestVMNoFilesAtAll checks a limit of zero files, which is possible because the scope's directory
// counts in Gluster's limit but not in Berth's.
func TestVMNoFilesAtAll(t *testing.T) {
	s := cluster(t)
	c, _, err := volumetest.Open(t, s.program, s.Mount, s.options())
	if err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	create(t, c, &pb.Limit{Inodes: &none})
	got, err := c.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	if err != nil || got.Limit.Inodes == nil || *got.Limit.Inodes != 0 || got.Limit.Bytes != nil || got.GetUsedInodes() != 0 {
		t.Errorf("scope %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(s.Mount, scopeA, "file"), nil, 0o644); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a file with a limit of none: %v", err)
	}
}

// TestVMBelow checks a volume in a directory of the Gluster volume, and one whose options refer to
// another place than the mount.
func TestVMBelow(t *testing.T) {
	s := cluster(t)
	below := filepath.Join(s.Mount, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(below) })
	c, _, err := volumetest.Open(t, s.program, below, s.options("path", "/below"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(8 << 20)
	create(t, c, &pb.Limit{Bytes: &size})
	got, err := c.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	if err != nil || got.Limit.GetBytes() != size {
		t.Errorf("scope %v, %v", got, err)
	}
	wrong, _, err := volumetest.Open(t, s.program, below, s.options())
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("b", 32)
	if _, err := wrong.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: other, Limit: &pb.Limit{Bytes: &size}}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a scope that the pool does not see: %v", err)
	}
	if _, err := os.Stat(filepath.Join(below, other)); !os.IsNotExist(err) {
		t.Errorf("a scope without its limit was left: %v", err)
	}
}

// TestVMHealth checks that stopped daemons are reported, and a mount that is not Gluster is
// refused.
func TestVMHealth(t *testing.T) {
	s := cluster(t)
	c, r, err := volumetest.Open(t, s.program, s.Mount, s.options())
	if err != nil || r.Enforcement != pb.Enforcement_DELAYED {
		t.Fatalf("opened as %v, %v", r, err)
	}
	if h := health(t, c); h.State != pb.HealthReport_HEALTHY || h.Metadata["volume"] != gluster.Volume || h.Metadata["hard_timeout_s"] != "0" {
		t.Errorf("health %v", h)
	}
	s.timeouts("60")
	if h := health(t, c); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "every 60 s") {
		t.Errorf("health with the timeout of a new volume %v", h)
	}
	if _, _, err := volumetest.Open(t, s.program, t.TempDir(), s.options()); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a directory that is not on GlusterFS: %v", err)
	}
	if _, _, err := volumetest.Open(t, s.program, s.Mount, s.options("volume", "other")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a volume that the pool does not have: %v", err)
	}
	c, r, err = volumetest.Open(t, s.program, s.Mount, s.options("gluster", "/no/such/program"))
	if err != nil || r.Enforcement != pb.Enforcement_NONE {
		t.Fatalf("without the program opened as %v, %v", r, err)
	}
	if h := health(t, c); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "option gluster") {
		t.Errorf("health without the program %v", h)
	}
}

func health(t *testing.T, c *volume.Client) *pb.HealthReport {
	t.Helper()
	h, err := c.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestVMQuotaDisabled checks that a limit is never ignored silently.
func TestVMQuotaDisabled(t *testing.T) {
	s := cluster(t)
	c, _, err := volumetest.Open(t, s.program, s.Mount, s.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), "volume", "quota", gluster.Volume, "disable"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Quotas(context.Background()); err != nil {
			t.Error(err)
		}
	})
	size := int64(8 << 20)
	limited := &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: &pb.Limit{Bytes: &size}}
	if _, err := c.CreateScope(t.Context(), limited); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a scope with a limit: %v", err)
	}
	if h := health(t, c); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "quota was disabled") {
		t.Errorf("health %v", h)
	}
	if _, err := os.Stat(filepath.Join(s.Mount, scopeA)); !os.IsNotExist(err) {
		t.Errorf("a scope without its limit was left: %v", err)
	}
	again, r, err := volumetest.Open(t, s.program, s.Mount, s.options())
	if err != nil || r.Enforcement != pb.Enforcement_NONE {
		t.Fatalf("opened as %v, %v", r, err)
	}
	if h := health(t, again); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "quota is not enabled") {
		t.Errorf("health %v", h)
	}
	if _, err := again.CreateScope(t.Context(), limited); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a scope with a limit where there are none: %v", err)
	}
	create(t, again, nil)
	if got, err := again.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA}); err != nil || got.UsedBytes == nil {
		t.Errorf("scope %v, %v", got, err)
	}
}
