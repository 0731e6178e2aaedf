package volume_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/internal/simulator/image/imagetest"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// sharesOptions are the options of a product with a file system for each scope: subvolumes of one
// btrfs, which are mounted by the device.
type sharesOptions struct {
	Pool   string `json:"pool" about:"where the whole file system is mounted"`
	Device string `json:"device" about:"what it is mounted from"`
}

// shares is the plugin of this product.
type shares struct {
	*driver.Mount
	sharesOptions
}

// serveShares turns this process into that plugin if it was started as one.
func serveShares() bool {
	if filepath.Base(os.Args[0]) != "shares" {
		return false
	}
	driver.Run(driver.Backend[sharesOptions]{Vendor: "Shares", Name: "shares", Version: "1.0.0",
		Open: func(_ context.Context, m *driver.Mount, o sharesOptions) (driver.Volume, error) {
			return &shares{m, o}, nil
		}})
	return true
}

func (s *shares) Traits() driver.Traits { return driver.Traits{} }

func (s *shares) Close() error { return nil }

func (s *shares) subvolume(scope string) string { return filepath.Join(s.Pool, "berth-"+scope) }

func (s *shares) CreateScope(ctx context.Context, scope string, _ *volumepb.Limit) error {
	if _, err := os.Stat(s.subvolume(scope)); err == nil {
		return nil
	}
	return exec.CommandContext(ctx, "btrfs", "subvolume", "create", s.subvolume(scope)).Run()
}

func (s *shares) GetScope(_ context.Context, scope string) (*volumepb.Scope, error) {
	if _, err := os.Stat(s.subvolume(scope)); err != nil {
		return nil, status.Error(codes.NotFound, "no such share")
	}
	return &volumepb.Scope{}, nil
}

func (s *shares) SetScopeLimit(context.Context, string, *volumepb.Limit) error { return nil }

func (s *shares) DeleteScope(ctx context.Context, scope string) error {
	entries, err := os.ReadDir(s.subvolume(scope))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) > 0 {
		return errors.Join(err, status.Error(codes.FailedPrecondition, "not empty"))
	}
	return exec.CommandContext(ctx, "btrfs", "subvolume", "delete", s.subvolume(scope)).Run()
}

func (s *shares) MountPlan(ctx context.Context, scope string) (*volumepb.MountSpec, error) {
	if _, err := s.GetScope(ctx, scope); err != nil {
		return nil, err
	}
	return &volumepb.MountSpec{FsType: "btrfs", Source: s.Device, Options: []string{"subvol=/berth-" + scope}}, nil
}

// newSharesHost returns a proxy on such a product. rule is the rule of the operator.
func newSharesHost(t *testing.T, rule func(device string) *scopemount.Rule, want storagepb.Volume_Health, message string) (h *storagetest.Host, pool string) {
	t.Helper()
	mount, device := imagetest.New(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "shares")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	options, err := json.Marshal(sharesOptions{Pool: mount, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	h = &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: program, MountPath: h.Mount, Create: true, OptionsJSON: string(options), ScopeMount: rule(device),
	}}}
	t.Cleanup(func() {
		for _, m := range scopesMounted(t, h.Mount) {
			_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH)
		}
	})
	h.StartUntil(want, message)
	t.Cleanup(func() { h.Stop() })
	return h, mount
}

func byDevice(device string) *scopemount.Rule {
	return &scopemount.Rule{Type: "btrfs", Source: device, Options: []string{"subvol=/berth-{scope}"}}
}

func scopesMounted(t *testing.T, dir string) []*mountinfo.Info {
	t.Helper()
	list, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestScopeMounts has a proxy that mounts the file system of a scope before any operation on it,
// finds the mount after a restart, lists folders of scopes that are not mounted, and removes the
// mount together with the scope.
func TestScopeMounts(t *testing.T) {
	h, pool := newSharesHost(t, byDevice, storagepb.Volume_HEALTHY, "")
	scope := uuid.NewString()
	hex := strings.ReplaceAll(scope, "-", "")
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope}); err != nil {
		t.Fatal(err)
	}
	h.Ref = &storagepb.FolderRef{Volume: "main", Scope: scope, Folder: uuid.NewString()}
	folder, err := h.API.CreateFolder(h.Ctx(), h.Ref)
	if err != nil {
		t.Fatal(err)
	}
	h.Path = filepath.Join(h.Mount, folder.Path)
	h.Write("f", "content")
	inPool := filepath.Join(pool, "berth-"+hex, strings.TrimPrefix(folder.Path, hex), "f")
	if got, err := os.ReadFile(inPool); err != nil || string(got) != "content" {
		t.Errorf("in the product's file system: %q, %v", got, err)
	}
	if at := scopesMounted(t, h.Mount); len(at) != 1 || !strings.Contains(at[0].Options, "nosuid,nodev") {
		t.Errorf("mounted: %+v", at)
	}

	h.Stop()
	h.Start()
	if resp := h.Tus("GET", "/download", h.Ticket("download", "f", 0), nil); string(storagetest.Body(t, resp)) != "content" {
		t.Errorf("after a restart: %s", resp.Status)
	}
	if at := scopesMounted(t, h.Mount); len(at) != 1 {
		t.Errorf("after a restart: %d mounts", len(at))
	}

	// After an unmount by someone else, nothing is written to the bare directory, and no folder is
	// reported as missing.
	if err := unix.Unmount(filepath.Join(h.Mount, hex), 0); err != nil {
		t.Fatal(err)
	}
	list, err := h.API.ListFolders(h.Ctx(), &storagepb.ListFoldersRequest{Volume: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := list.Recv(); err != nil || got.Folder != h.Ref.Folder || got.State != storagepb.FolderEntry_PRESENT {
		t.Errorf("folders: %v, %v", got, err)
	}
	h.Write("g", "more")
	if _, err := os.Stat(filepath.Join(filepath.Dir(inPool), "g")); err != nil {
		t.Error(err)
	}

	del, err := h.API.DeleteFolder(h.Ctx(), h.Ref)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = del.Recv()
	}
	if _, err := h.API.DeleteScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope}); err != nil {
		t.Fatal(err)
	}
	if at := scopesMounted(t, h.Mount); len(at) != 0 {
		t.Errorf("mounted after its end: %+v", at[0])
	}
	if _, err := h.API.CreateFolder(h.Ctx(), h.Ref); status.Code(err) != codes.NotFound {
		t.Errorf("folder in a missing scope: %v", err)
	}
}

// A mount that the operator does not permit is rejected, and requests get the reason.
func TestScopeMountIsRefused(t *testing.T) {
	other := func(string) *scopemount.Rule {
		return &scopemount.Rule{Type: "nfs", Source: "192.0.2.10:/berth-{scope}"}
	}
	h, _ := newSharesHost(t, other, storagepb.Volume_HEALTHY, "")
	scope := uuid.NewString()
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope}); err != nil {
		t.Fatal(err)
	}
	_, err := h.API.CreateFolder(h.Ctx(), &storagepb.FolderRef{Volume: "main", Scope: scope, Folder: uuid.NewString()})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `the type "btrfs"`) {
		t.Errorf("folder: %v", err)
	}
	wait.Until(t, "health has the reason", func() bool {
		s := h.Proxy.Volumes()[0]
		return s.Health == volumepb.HealthReport_DEGRADED && strings.Contains(s.Message, `the type "btrfs"`) && s.Details["scope_mounts"] == "by the proxy"
	})
	if at := scopesMounted(t, h.Mount); len(at) != 0 {
		t.Errorf("mounted: %+v", at[0])
	}
}
