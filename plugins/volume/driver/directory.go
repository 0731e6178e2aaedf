package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Directory is a Volume of plain directories on any file system. The usage is measured by walking,
// and only the proxy enforces limits, by refusing uploads. A vendor embeds Directory and replaces
// methods that the product implements better.
type Directory struct {
	*Mount
	*Walker
}

// NewDirectory returns the volume. The usage of a scope is measured again after maxAge.
func NewDirectory(m *Mount, maxAge time.Duration) *Directory {
	return &Directory{Mount: m, Walker: NewWalker(m, maxAge)}
}

// Traits implements Volume.
func (d *Directory) Traits() Traits { return Traits{Enforcement: pb.Enforcement_COOPERATIVE} }

// CreateScope implements Volume. It writes the limit first, so that a crash before the scope exists
// leaves only a limit, which the next attempt replaces.
func (d *Directory) CreateScope(_ context.Context, scope string, limit *pb.Limit) error {
	if err := d.writeLimit(scope, limit); err != nil {
		return err
	}
	return d.MakeScope(scope)
}

// GetScope implements Volume.
func (d *Directory) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	f, err := d.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &pb.Scope{}
	if out.Limit, err = d.readLimit(scope); err != nil {
		return nil, err
	}
	d.Fill(ctx, out, scope)
	return out, nil
}

// SetScopeLimit implements Volume.
func (d *Directory) SetScopeLimit(_ context.Context, scope string, limit *pb.Limit) error {
	f, err := d.OpenTree(scope)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.writeLimit(scope, limit)
}

// DeleteScope implements Volume.
func (d *Directory) DeleteScope(_ context.Context, scope string) error {
	if err := d.RemoveScope(scope); err != nil {
		return err
	}
	d.Forget(scope)
	return d.removeLimit(scope)
}

// Close implements Volume.
func (d *Directory) Close() error { return d.Walker.Close() }

// limitsDir contains the limits of scopes. It is beside the scopes and unreachable for users,
// because containers mount folders inside a scope.
const limitsDir = Own + "/scope"

// limits is the content of a scope's file; absent = no limit.
type limits struct {
	Bytes *int64 `json:"bytes,omitempty"`
}

func (m *Mount) readLimit(scope string) (*pb.Limit, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openAt(root, path.Join(limitsDir, scope), unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return &pb.Limit{}, nil
	}
	if err != nil {
		return nil, Error("read limit", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return nil, Error("read limit", err)
	}
	var l limits
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, status.Errorf(codes.DataLoss, "limit of scope %s: %v", scope, err)
	}
	return &pb.Limit{Bytes: l.Bytes}, nil
}

// writeLimit replaces the limit atomically and durably.
func (m *Mount) writeLimit(scope string, limit *pb.Limit) error {
	raw, err := json.Marshal(limits{Bytes: limit.Bytes})
	if err != nil {
		return err
	}
	return m.inLimits(func(d *os.File) error {
		f, err := create(d, scope+".new")
		if err != nil {
			return err
		}
		_, err = f.Write(raw)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		return unix.Renameat(int(d.Fd()), scope+".new", int(d.Fd()), scope)
	})
}

func (m *Mount) removeLimit(scope string) error {
	return m.inLimits(func(d *os.File) error {
		if err := unix.Unlinkat(int(d.Fd()), scope, 0); !errors.Is(err, unix.ENOENT) {
			return err
		}
		return nil
	})
}

func (m *Mount) inLimits(f func(d *os.File) error) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := makeAt(root, limitsDir)
	if err != nil {
		return Error("limit", err)
	}
	defer d.Close()
	return Error("limit", f(d))
}
