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

// CloneFolder creates a folder, in an existing scope, as a copy of another folder, which can
// be on another volume. The copy appears when it is complete; an existing folder counts as
// complete. A repeated call continues an interrupted copy. Directories that are too deep are
// left out, and left is called with their paths, in any order.
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

// Names in the directory of a folder that is being copied.
const (
	byWalk   = "copy"
	byPlugin = "plugin"
)

// bring copies a folder to a place beside its target, which must not exist, and then moves it
// there. If left is nil, it is an error to leave a directory out.
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
	err = moveToPlace(a.dir, made, target, path[33:])
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("the folder was created in the meantime: %w", errdefs.ErrAborted)
	}
	if err != nil {
		return classify("copy folder", path[33:], err)
	}
	return classify("copy folder", path[33:], a.remove())
}

// folderName joins the parts of the path "ab/cd/rest" of a folder.
func folderName(at string) string { return at[:2] + at[3:5] + at[6:] }

func there(dir *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// fill creates the copy: with the product's clone if possible, and by walking the tree
// otherwise.
func (v *Volume) fill(ctx context.Context, from *Folder, a *arrival, scope string, m *Meter, left func(path string)) error {
	// The progress of an interrupted plugin is unknown, so its copy is removed.
	if err := (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(a.dir, byPlugin); err != nil {
		return classify("copy folder", byPlugin, err)
	}
	if from.vol == v && !there(a.dir, byWalk) {
		done, err := v.accelerate(ctx, from, scope+"/"+arrivingDir+"/"+a.name+"/"+byPlugin, m)
		if done || ctx.Err() != nil {
			return err
		}
		if err != nil {
			v.log.Warn("the product did not copy the tree; the proxy copies it file by file", "error", err)
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

// accelerate asks the product to copy a tree by sharing its blocks; done is false if the product
// cannot.
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

// follow reads a plugin's progress until the stream ends. A stream that ends without a
// finished message is an error.
func follow(stream grpc.ServerStreamingClient[volumepb.Progress], m *Meter) error {
	var last volumepb.Progress
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !last.Finished {
				return fmt.Errorf("the plugin ended early: %w", errdefs.ErrInternal)
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

// MoveFolder moves a folder from one scope to another, which must exist, and opens it there;
// the caller closes it. It renames the folder if the file system can, and copies it otherwise:
// a product with a quota per directory cannot rename across two. If the folder is already
// there, it only opens it. A repeated call continues an interrupted copy.
//
// The manager makes sure that no one writes to the folder meanwhile.
func (v *Volume) MoveFolder(ctx context.Context, scope, folder, to string) (*Folder, error) {
	from, err := FolderPath(scope, folder)
	if err != nil {
		return nil, err
	}
	path, err := FolderPath(to, folder)
	if err != nil {
		return nil, err
	}
	if from == path {
		return v.Folder(scope, folder)
	}
	target, err := v.openScope(path[:32])
	if err != nil {
		return nil, err
	}
	defer target.Close()
	if err := v.carry(ctx, target, from, path); err != nil {
		return nil, err
	}
	// The original of a copy that was made now or before an interruption.
	if err := v.DeleteFolder(ctx, scope, folder, NewMeter()); err != nil {
		return nil, err
	}
	return v.Folder(to, folder)
}

// carry moves or copies a folder to its place in the target scope, unless it is there.
func (v *Volume) carry(ctx context.Context, target *os.File, from, path string) error {
	to := path[33:]
	there, err := openDir(target, to, plain)
	if err == nil {
		return there.Close()
	}
	if !errors.Is(err, unix.ENOENT) {
		return classify("move folder", to, err)
	}
	source, err := v.openScope(from[:32])
	if err != nil {
		return err
	}
	defer source.Close()
	folder, err := openDir(source, from[33:], plain)
	if err != nil {
		return classify("move folder", from[33:], err)
	}
	defer folder.Close()
	err = moveToPlace(source, from[33:], target, to)
	if errors.Is(err, unix.EXDEV) {
		return v.bring(ctx, &Folder{dir: folder, scope: source, vol: v, Path: from}, target, path, NewMeter(), nil)
	}
	if err != nil {
		return classify("move folder", to, err)
	}
	prune(source, from[33:38])
	return nil
}

// moveToPlace renames a directory to a folder's place.
func moveToPlace(from *os.File, name string, target *os.File, to string) error {
	dir, last := split(to)
	prefix, err := prefixMode(target)
	if err != nil {
		return err
	}
	for range 16 { // the deletion of another folder may remove a prefix concurrently
		parent, err := mkdirAll(target, dir, prefix, plain)
		if err != nil {
			return err
		}
		err = rename(from, name, parent, last, false)
		if err == nil {
			err = parent.Sync()
		}
		err = errors.Join(err, parent.Close())
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return unix.ENOENT
}
