package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// A plugin that hangs delays no transfer.
func TestPluginHangs(t *testing.T) {
	h := storagetest.New(t)
	h.Write("f", "content")
	pid := storagetest.PluginPid(t)
	halt(t, pid)
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	ctx, cancel := context.WithTimeout(h.Ctx(), 500*time.Millisecond)
	defer cancel()
	_, err := h.API.GetScope(ctx, &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope})
	storagetest.WantCode(t, err, codes.DeadlineExceeded)
	began := time.Now()
	if resp := h.Tus("GET", "/download", h.Ticket("download", "f", 0), nil); string(storagetest.Body(t, resp)) != "content" {
		t.Errorf("download: %s", resp.Status)
	}
	tk := h.Ticket("upload", "u", 1)
	at := h.Begin(tk, 1)
	if resp := h.Tus("PATCH", at, tk, strings.NewReader("x"), "Upload-Offset", "0"); resp.StatusCode != 204 {
		t.Errorf("upload: %s", resp.Status)
	}
	if _, err := h.API.ListFiles(h.Ctx(), &storagepb.ListFilesRequest{Folder: h.Ref}); err != nil {
		t.Errorf("list: %v", err)
	}
	t.Logf("beside a plugin that hangs all took %v", time.Since(began)) // 2 s are spent asking for the limit
	reported(h, t)
}

// halt stops a process and waits until all of its threads have stopped, which takes a moment on a
// busy machine.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the process has stopped", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(stats, func(file string) bool {
			text, _ := os.ReadFile(file)
			_, state, _ := strings.Cut(string(text), ") ")
			return !strings.HasPrefix(state, "T")
		})
	})
}

// reported checks that managers still get reports from the proxy.
func reported(h *storagetest.Host, t *testing.T) {
	t.Helper()
	watch, err := h.API.Watch(h.Ctx(), &storagepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Error(err)
	}
}

// liar is a plugin that returns impossible values. The test program serves it under the name
// "liar".
type liar struct {
	volumepb.UnimplementedVolumeServer
}

func serveLiar() bool {
	if filepath.Base(os.Args[0]) != "liar" {
		return false
	}
	volume.Serve(liar{})
	return true
}

func (liar) Describe(context.Context, *volumepb.DescribeRequest) (*volumepb.DescribeResponse, error) {
	return &volumepb.DescribeResponse{Vendor: "Liar", Backend: "liar", Version: "1"}, nil
}

func (liar) OpenVolume(context.Context, *volumepb.OpenVolumeRequest) (*volumepb.OpenVolumeResponse, error) {
	return &volumepb.OpenVolumeResponse{
		Capabilities: []volumepb.Capability{volumepb.Capability_SCOPE, volumepb.Capability_CAPACITY},
		Enforcement:  volumepb.Enforcement_NONE,
	}, nil
}

func (liar) Health(context.Context, *volumepb.VolumeRef) (*volumepb.HealthReport, error) {
	return &volumepb.HealthReport{State: volumepb.HealthReport_HEALTHY}, nil
}

func (liar) Capacity(context.Context, *volumepb.VolumeRef) (*volumepb.CapacityReport, error) {
	return &volumepb.CapacityReport{TotalBytes: 10, UsedBytes: 1 << 50}, nil
}

func (liar) CreateScope(_ context.Context, q *volumepb.ScopeRequest) (*volumepb.Scope, error) {
	return &volumepb.Scope{Scope: q.Scope, Path: "../../etc"}, nil
}

func TestPluginLies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "liar")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	h := &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: program, MountPath: h.Mount, Create: true,
	}}}
	h.StartUntil(storagepb.Volume_DEGRADED, "reports")
	defer h.Stop()
	_, err = h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: uuid.NewString()})
	storagetest.WantCode(t, err, codes.Internal)
}

func TestWrongChecksumIsRefused(t *testing.T) {
	h := &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: storagetest.VFS, MountPath: h.Mount, Create: true, SHA256: strings.Repeat("ab", 32),
	}}}
	h.StartUntil(storagepb.Volume_DEGRADED, "checksum")
	defer h.Stop()
	// Plugins of earlier tests may still be about to end.
	wait.Until(t, "no plugin runs", func() bool { return len(storagetest.PluginPids(t)) == 0 })
}

// An error about an invalid option names the option in the log.
func TestWrongOptionIsNamed(t *testing.T) {
	h := &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: storagetest.VFS, MountPath: h.Mount, Create: true, OptionsJSON: `{"usage_max_age_s": -1}`,
	}}}
	h.StartUntil(storagepb.Volume_DEGRADED, "usage_max_age_s: -1 is below 0")
	h.Stop()
}
