package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// CloneFolder makes a folder, in a scope that is there, a copy of another one,
// which may lie on another volume. It appears when it is complete; one that is
// there is done. After an interruption the copy continues. What is in directories that are
// too deep is left out, and left is called with their paths, in any order.
func (v *Volume) CloneFolder(ctx context.Context, from *Folder, scope, folder string, m *Meter, left func(path string)) error {
	path, err := FolderPath(scope, folder)
	if err != nil {
		return err
	}
	target, err := v.openScope(path[:32])
	if err != nil {
		return err
	}
	defer target.Close()
	there, err := openDir(target, path[33:], plain)
	if err == nil {
		return there.Close()
	}
	if !errors.Is(err, unix.ENOENT) {
		return classify("clone folder", folder, err)
	}
	if err := v.bring(ctx, from, target, path, m, left); err != nil {
		return fmt.Errorf("clone folder: %w", err)
	}
	return nil
}

// Names in the directory of a folder that arrives.
const (
	byWalk   = "copy"
	byPlugin = "plugin"
)

// bring copies a folder beside its place, which is free, and then puts it there. Without
// left it fails where something would be left out.
func (v *Volume) bring(ctx context.Context, from *Folder, target *os.File, path string, m *Meter, left func(path string)) (err error) {
	a, err := openArrival(target, folderName(path[33:]))
	if err != nil {
		return classify("copy folder", path[33:], err)
	}
	defer func() { a.ended(ctx, err) }()
	if err := v.fill(ctx, from, a, path[:32], m, left); err != nil {
		return err
	}
	if err := unix.Syncfs(int(a.dir.Fd())); err != nil {
		return classify("copy folder", path[33:], err)
	}
	made := byWalk
	if there(a.dir, byPlugin) {
		made = byPlugin
	}
	err = settle(a.dir, made, target, path[33:])
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("the folder has come to be meanwhile: %w", errdefs.ErrAborted)
	}
	if err != nil {
		return classify("copy folder", path[33:], err)
	}
	return classify("copy folder", path[33:], a.remove())
}

// folderName is the name in one piece of a folder that is at "ab/cd/rest".
func folderName(at string) string { return at[:2] + at[3:5] + at[6:] }

func there(dir *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// fill makes the copy: by the product, which needs not read what it copies, or
// else by a walk.
func (v *Volume) fill(ctx context.Context, from *Folder, a *arrival, scope string, m *Meter, left func(path string)) error {
	// How far an interrupted plugin has come is no one's to know.
	if err := (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(a.dir, byPlugin); err != nil {
		return classify("copy folder", byPlugin, err)
	}
	if from.vol == v && !there(a.dir, byWalk) {
		done, err := v.accelerate(ctx, from, scope+"/"+arrivingDir+"/"+a.name+"/"+byPlugin, m)
		if done || ctx.Err() != nil {
			return err
		}
		if err != nil {
			v.log.Warn("the product copies no tree, it is walked", "error", err)
			if err := (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(a.dir, byPlugin); err != nil {
				return classify("copy folder", byPlugin, err)
			}
		}
	}
	count := counter{ctx: ctx, sizes: true}
	if err := count.below(from.dir, "", 0); err != nil {
		return classify("count", "", err)
	}
	m.expect(count.files, count.bytes)
	if err := a.admit(ctx, v, scope, count.bytes, m); err != nil {
		return err
	}
	to, err := mkdir(a.dir, byWalk, 0o700, plain)
	if err != nil {
		return classify("copy folder", byWalk, err)
	}
	defer to.Close()
	c := newCopier(ctx, to, m)
	c.left = left
	return c.folder(from.dir)
}

// accelerate lets the product copy a tree by sharing its blocks; done is false
// where the product cannot.
func (v *Volume) accelerate(ctx context.Context, from *Folder, to string, m *Meter) (done bool, err error) {
	v.mu.Lock()
	caps := v.caps
	v.mu.Unlock()
	// A limit that the proxy keeps needs the size, which a walk counts.
	if caps.GetEnforcement() == volumepb.Enforcement_COOPERATIVE || !has(caps, volumepb.Capability_CLONE) {
		return false, nil
	}
	err = v.call(ctx, func(c *plugin.Client) error {
		stream, err := c.CloneTree(ctx, &volumepb.CopyRequest{Volume: v.cfg.Name, From: from.Path, To: to})
		if err != nil {
			return err
		}
		return follow(stream, m)
	})
	return err == nil, err
}

// follow reads a plugin's progress to its end. A stream that ends without
// having said that it is finished has failed.
func follow(stream grpc.ServerStreamingClient[volumepb.Progress], m *Meter) error {
	var last volumepb.Progress
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !last.Finished {
				return fmt.Errorf("the plugin ended before it was finished: %w", errdefs.ErrInternal)
			}
			return nil
		}
		if err != nil {
			return err
		}
		m.expect(max(0, p.GetFilesTotal()-last.GetFilesTotal()), max(0, p.GetBytesTotal()-last.GetBytesTotal()))
		m.did(max(0, p.FilesDone-last.FilesDone), max(0, p.BytesDone-last.BytesDone))
		last.FilesTotal, last.BytesTotal = p.FilesTotal, p.BytesTotal
		last.FilesDone, last.BytesDone, last.Finished = p.FilesDone, p.BytesDone, p.Finished
	}
}
