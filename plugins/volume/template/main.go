// Command template is a complete volume plugin to copy, for the file server of the fictional vendor
// ACME. It stores the limit of a directory in the extended attribute user.acme.limit, as a decimal
// number of bytes.
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// options are the options of a volume. The schema, the validation and the error messages are
// derived from these tags.
type options struct {
	MaxAge time.Duration `json:"usage_max_age" min:"0" max:"86400" about:"a scope's usage is measured again when it is older than this"`
	Limits bool          `json:"limits" about:"whether the server has a licence for limits"`
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "ACME", Name: "acme", Version: "0.1.0",
		Defaults: options{MaxAge: 30 * time.Second, Limits: true},
		Open:     open,
	})
}

// acme is one volume. Health, Capacity and ListScopes are those of the mount.
type acme struct {
	*driver.Mount
	options
	usage *driver.Walker // the server does not report the usage of directories
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	return &acme{Mount: m, options: o, usage: driver.NewWalker(m, o.MaxAge)}, nil
}

// Traits returns how well limits are enforced. The fictional server only stores them.
func (a *acme) Traits() driver.Traits {
	if !a.Limits {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_COOPERATIVE}
}

// CreateScope can be repeated: it is called again after an interruption.
func (a *acme) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := a.MakeScope(scope); err != nil {
		return err
	}
	if !a.Limits {
		return nil
	}
	return a.SetScopeLimit(ctx, scope, limit)
}

const attribute = "user.acme.limit"

func (a *acme) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	dir, err := a.OpenTree(scope) // follows no links; NOT_FOUND if it does not exist
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	out := &pb.Scope{Limit: &pb.Limit{}}
	if out.Limit.Bytes, err = limit(dir); err != nil {
		return nil, err
	}
	a.usage.Fill(ctx, out, scope)
	return out, nil
}

// limit reads a directory's limit; nil means none.
func limit(dir *os.File) (*int64, error) {
	var text [32]byte
	n, err := unix.Fgetxattr(int(dir.Fd()), attribute, text[:])
	if errors.Is(err, unix.ENODATA) {
		return nil, nil
	}
	if err != nil {
		return nil, driver.Error("read limit", err)
	}
	bytes, err := strconv.ParseInt(string(text[:n]), 10, 64)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "limit %q is not a number", text[:n])
	}
	return &bytes, nil
}

func (a *acme) SetScopeLimit(_ context.Context, scope string, l *pb.Limit) error {
	dir, err := a.OpenTree(scope)
	if err != nil {
		return err
	}
	defer dir.Close()
	if l.Bytes == nil { // nil means unlimited, not zero
		if err := unix.Fremovexattr(int(dir.Fd()), attribute); !errors.Is(err, unix.ENODATA) {
			return driver.Error("remove limit", err)
		}
		return nil
	}
	text := strconv.FormatInt(*l.Bytes, 10)
	return driver.Error("set limit", unix.Fsetxattr(int(dir.Fd()), attribute, []byte(text), 0))
}

func (a *acme) DeleteScope(_ context.Context, scope string) error {
	if err := a.RemoveScope(scope); err != nil {
		return err
	}
	a.usage.Forget(scope)
	return nil
}

func (a *acme) Close() error { return a.usage.Close() }
