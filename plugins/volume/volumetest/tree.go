package volumetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var treeChecks = []Check{
	{"tree-paths", "paths that leave the volume, or that go through a link, are refused by every tree call", treePaths},
	{"delete", "a deleted tree is gone, an absent one is finished, and links are not followed", deleted},
	{"mount-plan", "MountPlan returns a file system, a source, and no secret options", mountPlan},
}

// follow reads a stream of progress to its end.
func follow(s grpc.ServerStreamingClient[pb.Progress], err error) (*pb.Progress, error) {
	last := &pb.Progress{}
	for err == nil {
		var p *pb.Progress
		p, err = s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return last, err
		}
		if last.Finished {
			return last, errors.New("more progress after the end")
		}
		if p.FilesDone < last.FilesDone || p.BytesDone < last.BytesDone {
			return last, fmt.Errorf("progress falls from %v to %v", last, p)
		}
		last = p
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return last, err
	}
	if !last.Finished {
		return last, errors.New("the stream ends without a finished message")
	}
	return last, nil
}

// treeCall is a call for one path.
type treeCall struct {
	name string
	call func(path string) error
}

// calls returns the tree calls that the volume supports.
func calls(ctx context.Context, c *volume.Client, r *pb.OpenVolumeResponse, free string) []treeCall {
	var out []treeCall
	add := func(k pb.Capability, name string, f func(path string) error) {
		if has(r, k) {
			out = append(out, treeCall{name, f})
		}
	}
	tree := func(p string) *pb.TreeRef { return &pb.TreeRef{Volume: volumeName, Path: p} }
	pair := func(from, to string) *pb.CopyRequest { return &pb.CopyRequest{Volume: volumeName, From: from, To: to} }
	add(pb.Capability_USAGE_FAST, "usage", func(p string) error { _, err := c.TreeUsage(ctx, tree(p)); return err })
	add(pb.Capability_DELETE, "delete", func(p string) error { _, err := follow(c.DeleteTree(ctx, tree(p))); return err })
	add(pb.Capability_CLONE, "clone from", func(p string) error { _, err := follow(c.CloneTree(ctx, pair(p, free))); return err })
	return out
}

func treePaths(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	all := calls(ctx, c, r, id+"/free")
	if len(all) == 0 {
		return suite.Skip("no tree calls")
	}
	outside := filepath.Join(b.dir, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o755), os.Mkdir(filepath.Join(outside, "sub"), 0o755), os.WriteFile(filepath.Join(outside, "sub", "precious"), nil, 0o644)); err != nil {
		return err
	}
	links := os.Symlink(outside, b.at(id, "link")) == nil
	var errs []error
	for _, k := range all {
		for _, p := range []string{"", ".", "..", "/", "/etc", "../" + id, id + "/../..", id + "//x", id + "/./x", id + "/", id + "/x\x00y"} {
			errs = append(errs, want(fmt.Sprintf("%s %q", k.name, p), k.call(p), codes.InvalidArgument))
		}
		if !links {
			continue
		}
		// A path through a symbolic link does not exist or is not a directory.
		err := k.call(id + "/link/sub")
		if k.name == "delete" && err == nil {
			continue // deleting a missing tree succeeds; the check below verifies that nothing was deleted
		}
		errs = append(errs, want(k.name+" through a link", err, codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument))
	}
	if _, err := os.Stat(filepath.Join(outside, "sub", "precious")); err != nil {
		errs = append(errs, fmt.Errorf("outside of the volume: %w", err))
	}
	return done(errs, "%d calls", len(all))
}

func deleted(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_DELETE) {
		return suite.Skip("no DELETE")
	}
	if _, _, err := b.grow(id, "tree"); err != nil {
		return err
	}
	outside := filepath.Join(b.dir, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "precious"), nil, 0o644), os.WriteFile(b.at(id, "beside"), nil, 0o644)); err != nil {
		return err
	}
	_ = os.Symlink(outside, b.at(id, "tree", "out"))
	for range 2 { // the second time it is missing
		if _, err := follow(c.DeleteTree(ctx, &pb.TreeRef{Volume: volumeName, Path: id + "/tree"})); err != nil {
			return err
		}
		if err := b.eventually(ctx, func() error {
			if _, err := os.Lstat(b.at(id, "tree")); !os.IsNotExist(err) {
				return fmt.Errorf("the deleted tree: %v", err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, kept := range []string{filepath.Join(outside, "precious"), b.at(id, "beside")} {
		if _, err := os.Stat(kept); err != nil {
			return fmt.Errorf("what was not to be deleted: %w", err)
		}
	}
	_, err = follow(c.DeleteTree(ctx, &pb.TreeRef{Volume: volumeName, Path: id}))
	return want("a whole scope", err, codes.InvalidArgument)
}

func mountPlan(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_PER_SCOPE_MOUNT) {
		return suite.Skip("no PER_SCOPE_MOUNT")
	}
	m, err := c.MountPlan(ctx, ref(id))
	if err != nil {
		return err
	}
	if m.FsType == "" || m.Source == "" {
		return fmt.Errorf("plan %v", m)
	}
	for _, o := range m.Options {
		if strings.HasPrefix(o, "password=") || strings.HasPrefix(o, "secret=") {
			return errors.New("the plan has a secret among its options, which every node sees")
		}
	}
	_, err = c.MountPlan(ctx, ref("nonsense"))
	return want("no scope", err, codes.InvalidArgument)
}
