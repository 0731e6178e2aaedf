package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// reportEvery is the shortest time between two messages of progress.
const reportEvery = 200 * time.Millisecond

// tree checks a path. below means that it must not be a whole scope.
func tree(field, p string, below bool) error {
	if !IsTree(p) {
		return status.Errorf(codes.InvalidArgument, "%s: %q is not a path below a scope", field, shown(p))
	}
	if below && !strings.Contains(p, "/") {
		return status.Errorf(codes.InvalidArgument, "%s: %s is a whole scope", field, p)
	}
	return nil
}

// directory checks that a path is a directory and contains no symbolic link.
func (o *opened) directory(p string) error {
	if err := tree("path", p, false); err != nil {
		return err
	}
	d, err := o.mount.OpenTree(p)
	if err != nil {
		return err
	}
	return d.Close()
}

// TreeUsage implements the contract.
func (p *Plugin) TreeUsage(ctx context.Context, r *pb.TreeRef) (out *pb.TreeUsageReport, err error) {
	err = p.call(ctx, r.GetVolume(), pb.Capability_USAGE_FAST, func(ctx context.Context, o *opened) error {
		if err := o.directory(r.GetPath()); err != nil {
			return err
		}
		out, err = o.Volume.(Measurer).TreeUsage(ctx, r.GetPath())
		if err == nil && out.AsOfUnixMs == 0 {
			out.AsOfUnixMs = now()
		}
		return err
	})
	return out, err
}

// CloneTree implements the contract.
func (p *Plugin) CloneTree(r *pb.CopyRequest, out grpc.ServerStreamingServer[pb.Progress]) error {
	return p.call(out.Context(), r.GetVolume(), pb.Capability_CLONE, func(ctx context.Context, o *opened) error {
		if err := errors.Join(tree("from", r.GetFrom(), false), tree("to", r.GetTo(), true)); err != nil {
			return status.Error(codes.InvalidArgument, status.Convert(err).Message())
		}
		if strings.HasPrefix(r.GetTo()+"/", r.GetFrom()+"/") {
			return status.Error(codes.InvalidArgument, "to: is the same tree, or inside it")
		}
		if err := o.free(r); err != nil {
			return err
		}
		report, done := progress(out)
		err := o.Volume.(Cloner).CloneTree(ctx, r.GetFrom(), r.GetTo(), report)
		if err == nil {
			err = ctx.Err() // for a volume that ignores its context
		}
		if err != nil {
			if !is(err, codes.AlreadyExists) {
				o.sweep(ctx, r.GetTo())
			}
			return err
		}
		return done()
	})
}

// free checks that the source exists and the target does not.
func (o *opened) free(r *pb.CopyRequest) error {
	from, err := o.mount.OpenTree(r.GetFrom())
	if err != nil {
		return Error("from", err)
	}
	from.Close()
	parent, err := o.mount.OpenTree(path.Dir(r.GetTo()))
	if err != nil {
		return Error("to", err)
	}
	defer parent.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(parent.Fd()), path.Base(r.GetTo()), &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		return status.Errorf(codes.AlreadyExists, "to: %s exists", r.GetTo())
	}
	if !errors.Is(err, unix.ENOENT) {
		return Error("to", err)
	}
	return nil
}

// sweep removes the target of a failed copy.
func (o *opened) sweep(ctx context.Context, to string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
	defer cancel()
	var err error
	if d, ok := o.Volume.(Deleter); ok && o.has(pb.Capability_DELETE) {
		err = d.DeleteTree(ctx, to, func(*pb.Progress) {})
	} else {
		err = o.mount.RemoveTree(ctx, to)
	}
	if err != nil && !is(err, codes.NotFound) {
		volume.Logger().Warn("remove the target of a copy that failed", "target", to, "error", err.Error())
	}
}

// DeleteTree implements the contract.
func (p *Plugin) DeleteTree(r *pb.TreeRef, out grpc.ServerStreamingServer[pb.Progress]) error {
	return p.call(out.Context(), r.GetVolume(), pb.Capability_DELETE, func(ctx context.Context, o *opened) error {
		if err := tree("path", r.GetPath(), true); err != nil {
			return err
		}
		report, done := progress(out)
		// The tree itself can be of any type, but its parent path must not contain a symbolic link.
		err := o.directory(path.Dir(r.GetPath()))
		if err == nil {
			err = o.Volume.(Deleter).DeleteTree(ctx, r.GetPath(), report)
		}
		if err != nil && !is(err, codes.NotFound) {
			return err
		}
		return done()
	})
}

// progress returns a function that forwards reports at a limited rate, and one that sends the last
// report as finished.
func progress(out grpc.ServerStreamingServer[pb.Progress]) (Progress, func() error) {
	var mu sync.Mutex // a volume may report from several goroutines
	last, sent := &pb.Progress{}, time.Now()
	report := func(p *pb.Progress) {
		mu.Lock()
		defer mu.Unlock()
		last = proto.CloneOf(p)
		last.Finished = false
		if time.Since(sent) >= reportEvery {
			sent = time.Now()
			_ = out.Send(last) // if the caller has disconnected, the context has ended too
		}
	}
	return report, func() error {
		mu.Lock()
		defer mu.Unlock()
		last.Finished = true
		return out.Send(last)
	}
}

// RemoveTree removes a tree below a scope entry by entry. It removes symbolic links without
// following them. A missing tree is not an error.
func (m *Mount) RemoveTree(ctx context.Context, tree string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	parent, err := openAt(root, path.Dir(tree), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return Error("remove tree", err)
	}
	defer parent.Close()
	return Error("remove tree", remove(ctx, parent, path.Base(tree), 0))
}

// deepest limits the number of open descriptors, one per level.
const deepest = 512

func remove(ctx context.Context, dir *os.File, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%q: %w", name, err)
	}
	if depth > deepest {
		return fmt.Errorf("%q: more than %d levels deep", name, deepest)
	}
	d, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, n := range names {
			if err := remove(ctx, d, n, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// Removing entries may have changed the position in the listing.
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
