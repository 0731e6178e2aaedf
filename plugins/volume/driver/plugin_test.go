package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const id = "0123456789abcdef0123456789abcdef"

// fake is a volume of directories with faults that a test can enable.
type fake struct {
	*driver.Directory
	traits  driver.Traits
	create  func() error
	get     func()
	closed  chan struct{}
	created int
}

func (f *fake) Traits() driver.Traits { return f.traits }

func (f *fake) CreateScope(ctx context.Context, scope string, l *pb.Limit) error {
	f.created++
	if err := f.Directory.CreateScope(ctx, scope, l); err != nil || f.create == nil {
		return err
	}
	return f.create()
}

func (f *fake) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	if f.get != nil {
		f.get()
	}
	return f.Directory.GetScope(ctx, scope)
}

func (f *fake) Close() error { close(f.closed); return f.Directory.Close() }

// opened returns a plugin whose volume "v" is the fake in a new directory.
func opened(t *testing.T, f *fake) (*driver.Plugin, string, *pb.OpenVolumeResponse) {
	t.Helper()
	p := driver.New(driver.Backend[struct{}]{Vendor: "F", Name: "fake", Version: "1",
		Open: func(_ context.Context, m *driver.Mount, _ struct{}) (driver.Volume, error) {
			n := *f
			n.Directory, n.closed = driver.NewDirectory(m, 0), make(chan struct{})
			*f = n
			return f, nil
		}})
	at := t.TempDir()
	r, err := p.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: at})
	if err != nil {
		t.Fatal(err)
	}
	return p, at, r
}

func TestLacks(t *testing.T) {
	p, _, r := opened(t, &fake{traits: driver.Traits{Enforcement: pb.Enforcement_HARD, Inodes: true,
		Lacks: []pb.Capability{pb.Capability_CAPACITY, pb.Capability_QUOTA_BYTES, pb.Capability_QUOTA_INODES}}})
	if want := []pb.Capability{pb.Capability_SCOPE, pb.Capability_LIST_SCOPES}; !slices.Equal(r.Capabilities, want) || r.Enforcement != pb.Enforcement_NONE {
		t.Errorf("%v, want %v and no enforcement", r, want)
	}
	if _, err := p.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("capacity: %v", err)
	}
	n := int64(1)
	q := &pb.ScopeRequest{Volume: "v", Scope: id, Limit: &pb.Limit{Bytes: &n}}
	if _, err := p.CreateScope(t.Context(), q); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a limit that is not enforced: %v", err)
	}
}

// A scope whose creation failed is removed, and an interrupted creation is completed.
func TestHalfMade(t *testing.T) {
	f := &fake{create: func() error { return unix.EIO }}
	p, at, _ := opened(t, f)
	q := &pb.ScopeRequest{Volume: "v", Scope: id}
	if _, err := p.CreateScope(t.Context(), q); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(at, id)); !os.IsNotExist(err) {
		t.Errorf("a scope that could not be created: %v", err)
	}
	f.create, f.created = nil, 0
	if err := errors.Join(os.Mkdir(filepath.Join(at, id), 0o755), os.WriteFile(filepath.Join(at, ".berth/making", id), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.CreateScope(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if f.created != 1 {
		t.Errorf("created %d times, want once, to complete it", f.created)
	}
}

func TestPanicIsAnError(t *testing.T) {
	p, _, _ := opened(t, &fake{get: func() { panic("oh") }})
	if _, err := p.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: id}); status.Code(err) != codes.Internal {
		t.Errorf("%v", err)
	}
}

// A volume is closed after its last call has ended.
func TestCloseWaits(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	f := &fake{get: func() { close(inside); <-leave }}
	p, _, _ := opened(t, f)
	called := make(chan error)
	go func() {
		_, err := p.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: id})
		called <- err
	}()
	<-inside
	done := make(chan error)
	go func() { _, err := p.CloseVolume(t.Context(), &pb.VolumeRef{Volume: "v"}); done <- err }()
	select {
	case <-f.closed:
		t.Error("closed under a call")
	case err := <-done:
		t.Errorf("closed under a call: %v", err)
	default:
	}
	close(leave)
	if err := <-called; status.Code(err) != codes.NotFound {
		t.Errorf("%v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-f.closed
}

func TestErrorKeepsItsCause(t *testing.T) {
	err := driver.Error("set limit", fmt.Errorf("of scope: %w", unix.EDQUOT))
	if status.Code(err) != codes.ResourceExhausted || !errors.Is(err, unix.EDQUOT) || err.Error() != "set limit: of scope: disk quota exceeded" {
		t.Errorf("%v", err)
	}
	if again := driver.Error("create scope", err); status.Code(again) != codes.ResourceExhausted || !errors.Is(again, unix.EDQUOT) {
		t.Errorf("%v", again)
	}
}
