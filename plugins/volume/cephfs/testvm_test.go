package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/testvm/ceph"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// one is the cluster that all tests of this process share.
var one = vmtest.Product[*ceph.Cluster]{Make: ceph.Make}

func TestMain(m *testing.M) { one.Main(m) }

// site is the cluster's mount and the plugin.
type site struct {
	*testing.T
	mount, program string
}

// cluster starts the cluster, or skips the test with the reason why it cannot.
func cluster(t *testing.T) site {
	t.Helper()
	return site{t, one.Get(t).Mount, vmtest.Program(t, "cephfs", ".")}
}

const scopeA = "0123456789abcdef0123456789abcdef"

// pause waits until the statistics of a scope are updated, which takes up to a second, before
// another 4 MiB are written.
const pause = 500 * time.Millisecond

// TestVMSuite runs the suite on a real CephFS.
func TestVMSuite(t *testing.T) {
	s := cluster(t)
	volumetest.Test(t, volumetest.Plugin{Path: s.program, Mount: s.mount, Environment: volumetest.Environment{Pause: pause}})
}

// TestVMNoFilesAtAll checks a limit of zero files, which is possible because the scope's directory
// counts in Ceph's limit but not in Berth's.
func TestVMNoFilesAtAll(t *testing.T) {
	s := cluster(t)
	c, _, err := volumetest.Open(t, s.program, s.mount, "")
	if err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	made, err := c.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: &pb.Limit{Inodes: &none}})
	if err != nil || made.Limit.Inodes == nil || *made.Limit.Inodes != 0 || made.Limit.Bytes != nil || made.GetUsedInodes() != 0 {
		t.Fatalf("made %v, %v", made, err)
	}
	file := filepath.Join(s.mount, scopeA, "file")
	if err := os.WriteFile(file, nil, 0o644); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a file with a limit of none: %v", err)
	}
	if _, err := c.SetScopeLimit(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA}); err != nil {
		t.Error(err)
	}
}

// TestVMHoleCounts verifies docs/storage/cephfs.md: Ceph counts lengths of files.
func TestVMHoleCounts(t *testing.T) {
	s := cluster(t)
	c, _, err := volumetest.Open(t, s.program, s.mount, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA}); err != nil {
		t.Fatal(err)
	}
	hole := filepath.Join(s.mount, scopeA, "hole")
	if err := os.WriteFile(hole, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(hole, 1<<30); err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		got, err := c.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetUsedBytes() != 1<<30 || got.GetUsedInodes() != 1 {
			return fmt.Errorf("a hole of 1 GiB counts as %v", got)
		}
		return nil
	})
	if err := os.Remove(hole); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA}); err != nil {
		t.Error(err)
	}
}

// TestVMHealth checks that a mount without quotas is reported, and a mount that is not CephFS is
// refused.
func TestVMHealth(t *testing.T) {
	s := cluster(t)
	c, r, err := volumetest.Open(t, s.program, s.mount, "")
	if err != nil || r.Enforcement != pb.Enforcement_DELAYED {
		t.Fatalf("opened as %v, %v", r, err)
	}
	h, err := c.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
	if err != nil || h.State != pb.HealthReport_HEALTHY || h.Metadata["client"] != "ceph-fuse" {
		t.Errorf("health %v, %v", h, err)
	}
	c, r, err = volumetest.Open(t, s.program, s.mount, `{"quota": false}`)
	if err != nil || r.Enforcement != pb.Enforcement_NONE {
		t.Fatalf("without quotas opened as %v, %v", r, err)
	}
	h, err = c.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
	if err != nil || h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "option quota") {
		t.Errorf("health without quotas %v, %v", h, err)
	}
	if _, _, err := volumetest.Open(t, s.program, t.TempDir(), ""); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a directory that is not on CephFS: %v", err)
	}
}
