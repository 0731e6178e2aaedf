package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const (
	full     = `{"quota": "full"}`
	simple   = `{"quota": "simple"}`
	scopeA   = "0123456789abcdef0123456789abcdef"
	scopeB   = "fedcba9876543210fedcba9876543210"
	mebibyte = 1 << 20
)

func TestConformance(t *testing.T) {
	for name, options := range map[string]string{"full": full, "simple": simple, "off": `{"usage_max_age_s": 0}`} {
		t.Run(name, func(t *testing.T) {
			volumetest.Test(t, volumetest.Plugin{Path: simulatortest.Program(t), Env: []string{simulatortest.QuickExit}, Mount: simulatortest.Image(t).Mount, Options: options})
		})
	}
}

// bed is a plugin with one open volume.
type bed struct {
	*testing.T
	*volume.Client
	mount  string
	opened *pb.OpenVolumeResponse
}

func start(t *testing.T, mount, options string) *bed {
	t.Helper()
	b := &bed{T: t, Client: simulatortest.Launch(t), mount: mount}
	var err error
	b.opened, err = b.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: mount, OptionsJson: options})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) create(scope string, bytes int64) {
	b.Helper()
	q := &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: &pb.Limit{}}
	if bytes >= 0 {
		q.Limit.Bytes = &bytes
	}
	if _, err := b.CreateScope(b.Context(), q); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) limit(scope string, bytes int64) {
	b.Helper()
	if _, err := b.SetScopeLimit(b.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: &pb.Limit{Bytes: &bytes}}); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) write(name string, bytes int) error {
	return os.WriteFile(filepath.Join(b.mount, name), make([]byte, bytes), 0o644)
}

func (b *bed) health() *pb.HealthReport {
	b.Helper()
	h, err := b.Health(b.Context(), &pb.VolumeRef{Volume: "v"})
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func (b *bed) clone(from, to string) error {
	s, err := b.CloneTree(b.Context(), &pb.CopyRequest{Volume: "v", From: from, To: to})
	for err == nil {
		_, err = s.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (b *bed) top() *os.File {
	b.Helper()
	f, err := os.Open(b.mount)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

func (b *bed) used(scope string) int64 {
	b.Helper()
	s, err := b.GetScope(b.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
	if err != nil {
		b.Fatal(err)
	}
	return s.GetUsedBytes()
}

// TestLimitsRefuseBytes writes as any user of a folder does.
func TestLimitsRefuseBytes(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, full)
	b.create(scopeA, 16*mebibyte)
	if err := b.write(scopeA+"/data", 32*mebibyte); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("write past the limit: %v, want EDQUOT", err)
	}
	if used := b.used(scopeA); used > 16*mebibyte || used < 15*mebibyte {
		t.Errorf("%d bytes are used", used)
	}
	b.limit(scopeA, 40*mebibyte)
	if err := b.write(scopeA+"/data", 32*mebibyte); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
	b.limit(scopeA, mebibyte) // below the present usage
	if err := b.write(scopeA+"/more", mebibyte); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("write under a limit below usage: %v", err)
	}
	if err := os.Remove(filepath.Join(b.mount, scopeA, "data")); err != nil {
		t.Errorf("remove at the limit: %v", err)
	}
	b.limit(scopeA, 40*mebibyte)
	if err := b.write(scopeA+"/more", mebibyte); err != nil {
		t.Errorf("after all was removed: %v", err)
	}
}

// TestUsageIsFresh checks that usage needs no sync, because reservations count.
func TestUsageIsFresh(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, full)
	b.create(scopeA, -1)
	if err := b.write(scopeA+"/data", 8*mebibyte); err != nil {
		t.Fatal(err)
	}
	if used := b.used(scopeA); used < 8*mebibyte || used > 9*mebibyte {
		t.Errorf("%d bytes are used right after 8 MiB were written", used)
	}
}

func TestClone(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, full)
	b.create(scopeA, -1)
	b.create(scopeB, 4*mebibyte)
	if err := os.MkdirAll(filepath.Join(b.mount, scopeA, "from/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := b.write(scopeA+"/from/sub/data", 8*mebibyte); err != nil {
		t.Fatal(err)
	}
	if err := b.clone(scopeA+"/from", scopeA+"/to"); err != nil {
		t.Errorf("clone within the scope: %v", err)
	}
	if err := qgroup.Sync(b.top()); err != nil {
		t.Fatal(err)
	}
	if used := b.used(scopeA); used > 9*mebibyte {
		t.Errorf("%d bytes are used by 8 MiB and their clone", used)
	}
	if err := b.clone(scopeA+"/from", scopeB+"/to"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("clone past the limit of another scope: %v, want RESOURCE_EXHAUSTED", err)
	}
	if left, err := os.ReadDir(filepath.Join(b.mount, scopeB)); len(left) != 0 || err != nil {
		t.Errorf("a clone that was refused left %v, %v", left, err)
	}
	b.limit(scopeB, 64*mebibyte)
	if err := b.clone(scopeA+"/from", scopeB+"/to"); err != nil {
		t.Errorf("clone to another scope: %v", err)
	}
	if st, err := os.Stat(filepath.Join(b.mount, scopeB, "to/sub/data")); err != nil || st.Size() != 8*mebibyte {
		t.Errorf("cloned: %v, %v", st, err)
	}
}

// TestWithoutQuotas checks that the plugin reports missing quotas, and notices when the operator
// enables them.
func TestWithoutQuotas(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, "")
	if b.opened.Enforcement != pb.Enforcement_NONE {
		t.Errorf("opened as %v", b.opened)
	}
	if h := b.health(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "quotas are off") {
		t.Errorf("health %v", h)
	}
	b.create(scopeA, -1)
	limit := int64(1)
	if _, err := b.SetScopeLimit(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: &pb.Limit{Bytes: &limit}}); status.Code(err) != codes.Unimplemented {
		t.Errorf("limit without quotas: %v", err)
	}
	if err := qgroup.Enable(b.top(), qgroup.Full); err != nil {
		t.Fatal(err)
	}
	again, err := b.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: b.mount})
	if err != nil || again.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened with quotas: %v, %v", again, err)
	}
	b.limit(scopeA, mebibyte)

	if err := qgroup.Disable(b.top()); err != nil {
		t.Fatal(err)
	}
	if h := b.health(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "turned off") {
		t.Errorf("health %v", h)
	}
	if _, err := b.SetScopeLimit(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: &pb.Limit{Bytes: &limit}}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("limit after quotas were turned off: %v", err)
	}
	if _, err := b.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA}); status.Code(err) != codes.Unavailable {
		t.Errorf("usage after quotas were turned off: %v", err)
	}
}

// TestHealthFindsWhatEscapes creates a subvolume in a scope, as any user can.
func TestHealthFindsWhatEscapes(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, full)
	b.create(scopeA, -1)
	wait, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := qgroup.WaitRescan(wait, b.top()); err != nil {
		t.Fatal(err)
	}
	if h := b.health(); h.State != pb.HealthReport_HEALTHY || h.Metadata["quota"] != "full" {
		t.Errorf("health %v", h)
	}
	d, err := os.Open(filepath.Join(b.mount, scopeA))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := qgroup.Create(d, "mine", nil); err != nil {
		t.Fatal(err)
	}
	if h := b.health(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "1 subvolumes are inside scopes") {
		t.Errorf("health %v", h)
	}
}

// TestPlainDirectory checks a scope that another plugin created.
func TestPlainDirectory(t *testing.T) {
	b := start(t, simulatortest.Image(t).Mount, full)
	if err := os.Mkdir(filepath.Join(b.mount, scopeA), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := b.write(scopeA+"/data", mebibyte); err != nil {
		t.Fatal(err)
	}
	if used := b.used(scopeA); used < mebibyte {
		t.Errorf("%d bytes are used", used)
	}
	limit := int64(1)
	_, err := b.SetScopeLimit(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA, Limit: &pb.Limit{Bytes: &limit}})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "plain directory") {
		t.Errorf("limit: %v", err)
	}
}

func TestNotBtrfs(t *testing.T) {
	c := simulatortest.Launch(t)
	dir := t.TempDir()
	if out, _ := exec.Command("stat", "-f", "-c", "%T", dir).Output(); strings.TrimSpace(string(out)) == "btrfs" {
		t.Skip("the temporary directory is on btrfs itself")
	}
	if _, err := c.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: dir}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("open: %v", err)
	}
}
