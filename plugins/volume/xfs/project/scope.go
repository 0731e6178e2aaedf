package project

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// CreateScope implements driver.Volume. It creates the directory in a hidden place, with its
// project and limits, and then renames it. So there is no moment at which the scope exists without
// limits, and a killed process leaves no incomplete scope.
func (v *Volume) CreateScope(_ context.Context, scope string, limit *pb.Limit) error {
	if !v.quota.counted {
		return v.MakeScope(scope)
	}
	root, err := v.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	want, err := kernelLimit(root, limit)
	if err != nil {
		return err
	}
	own, err := v.own(root)
	if err != nil {
		return err
	}
	defer own.Close() // also releases the lock
	if d, err := v.OpenTree(scope); err == nil {
		return d.Close()
	}
	return driver.Error("create scope", build(root, own, scope, want))
}

// own opens Berth's directory on the volume and locks it against other processes that create
// scopes. The lock is released when the process exits.
func (v *Volume) own(root *os.File) (*os.File, error) {
	if err := unix.Mkdirat(int(root.Fd()), driver.Own, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, driver.Error("make "+driver.Own, err)
	}
	own, err := v.OpenTree(driver.Own)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(own.Fd()), unix.LOCK_EX)
		if err == nil {
			return own, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(driver.Error("lock "+driver.Own, err), own.Close())
		}
	}
}

// unfinished returns the hidden name of a scope until it is complete.
func unfinished(scope string) string { return "new-" + scope }

func build(root, own *os.File, scope string, want prjquota.Quota) error {
	name := unfinished(scope)
	// An existing one was left by a killed process.
	if err := unix.Mkdirat(int(own.Fd()), name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	fd, err := unix.Openat(int(own.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), scope)
	defer d.Close()
	if err := d.Chmod(0o755); err != nil { // the umask removed bits
		return err
	}
	id, err := allocate(d, scope)
	if err != nil {
		return err
	}
	if err := prjquota.Limit(d, id, want.MaxBytes, want.MaxInodes); err != nil {
		return err
	}
	if err := unix.Renameat2(int(own.Fd()), name, int(root.Fd()), scope, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	return root.Sync()
}

// GetScope implements driver.Volume. It makes three system calls.
func (v *Volume) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	d, err := v.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out := &pb.Scope{Scope: scope, Limit: &pb.Limit{}}
	var id prjquota.ID
	if v.quota.counted {
		if id, _, err = prjquota.Of(d); err != nil {
			return nil, driver.Error("", err)
		}
	}
	if id == 0 { // there is no accounting
		v.walk.Fill(ctx, out, scope)
		return out, nil
	}
	q, err := prjquota.Get(d, id)
	if err != nil {
		return nil, driver.Error("", err)
	}
	if q.MaxBytes > 0 {
		out.Limit.Bytes = &q.MaxBytes
	}
	if q.MaxInodes > 0 {
		below := q.MaxInodes - rootInode
		out.Limit.Inodes = &below
	}
	inodes := max(q.Inodes-rootInode, 0)
	out.UsedBytes, out.UsedInodes, out.Exact = &q.Bytes, &inodes, true
	return out, nil
}

// SetScopeLimit implements driver.Volume.
func (v *Volume) SetScopeLimit(_ context.Context, scope string, limit *pb.Limit) error {
	d, err := v.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	want, err := kernelLimit(d, limit)
	if err != nil {
		return err
	}
	id, inherited, err := prjquota.Of(d)
	if err == nil && (id == 0 || !inherited) {
		id, err = v.adopt(d, scope)
	}
	if err != nil {
		return driver.Error("", err)
	}
	return driver.Error("", prjquota.Limit(d, id, want.MaxBytes, want.MaxInodes))
}

// adopt assigns a project to an empty scope that was created without quotas.
func (v *Volume) adopt(d *os.File, scope string) (prjquota.ID, error) {
	root, err := v.Root()
	if err != nil {
		return 0, err
	}
	defer root.Close()
	own, err := v.own(root)
	if err != nil {
		return 0, err
	}
	defer own.Close()
	if _, err := d.Readdirnames(1); !errors.Is(err, io.EOF) {
		return 0, status.Errorf(codes.FailedPrecondition,
			"scope %s has files that were written while project quotas were off and that belong to no project: copy its folders to a new scope", scope)
	}
	return allocate(d, scope)
}

// DeleteScope implements driver.Volume. The removed directory stays open until the limits are
// removed: it counts in its project, so that no other scope takes the id in the meantime.
func (v *Volume) DeleteScope(_ context.Context, scope string) error {
	d, err := v.OpenTree(scope)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	var id prjquota.ID
	if v.quota.counted {
		if id, _, err = prjquota.Of(d); err != nil {
			return driver.Error("", err)
		}
	}
	if err := v.RemoveScope(scope); err != nil {
		return err
	}
	v.walk.Forget(scope)
	if id == 0 {
		return nil
	}
	return driver.Error("", prjquota.Limit(d, id, 0, 0))
}

// ListScopes also returns limits and usage, which cost three system calls.
func (v *Volume) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		for s, err := range v.Mount.ListScopes(ctx) {
			if err == nil {
				s, err = v.GetScope(ctx, s.Scope)
			}
			if status.Code(err) == codes.NotFound { // removed since
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}
