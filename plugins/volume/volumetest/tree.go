package volumetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	{"copy", "a copy has every entry with its content and mode, links as links; progress grows and ends", copied},
	{"copy-exists", "a copy onto something that exists is ALREADY_EXISTS and changes nothing, of nothing NOT_FOUND", copyExists},
	{"copy-cancel", "a copy that is cancelled leaves no target", copyCancel},
	{"delete", "a deleted tree is gone, an absent one is finished, and links are not followed", deleted},
	{"scan", "a scan lists what a walk finds, at most 1,024 entries a message, links as links", scanned},
	{"mount-plan", "MountPlan tells a file system, a source, and no secret options", mountPlan},
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
	add(pb.Capability_SCAN, "scan", func(p string) error { s, err := c.ScanTree(ctx, tree(p)); return first(s, err) })
	add(pb.Capability_COPY, "copy from", func(p string) error { _, err := follow(c.CopyTree(ctx, pair(p, free))); return err })
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

// alike compares two trees and returns the differences as an error.
func alike(one, two string) error {
	a, err := snapshot(one)
	if err != nil {
		return err
	}
	z, err := snapshot(two)
	if err != nil {
		return err
	}
	for name, v := range a {
		if z[name] != v {
			return fmt.Errorf("%q is %q and in the copy %q", name, v, z[name])
		}
	}
	if len(a) != len(z) {
		return fmt.Errorf("%d entries, %d in the copy", len(a), len(z))
	}
	return nil
}

// snapshot returns the type, mode and content of each entry.
func snapshot(root string) (map[string]string, error) {
	out := map[string]string{}
	return out, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		out[rel] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(p)
			out[rel] += " " + string(raw)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			out[rel] += " " + to
			return err
		}
		return nil
	})
}

func copied(ctx context.Context, b *bench) error {
	return b.copies(ctx, pb.Capability_COPY)
}

// duplicate calls CopyTree or CloneTree.
func duplicate(ctx context.Context, c *volume.Client, k pb.Capability, from, to string) (grpc.ServerStreamingClient[pb.Progress], error) {
	q := &pb.CopyRequest{Volume: volumeName, From: from, To: to}
	if k == pb.Capability_CLONE {
		return c.CloneTree(ctx, q)
	}
	return c.CopyTree(ctx, q)
}

// copies checks a copy within a scope and one into another scope.
func (b *bench) copies(ctx context.Context, k pb.Capability) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, k) {
		return suite.Skip("no " + k.String())
	}
	if _, _, err := b.grow(id, "tree"); err != nil {
		return err
	}
	if err := fill(b.at(id, "tree", "big"), 4<<20); err != nil {
		return err
	}
	other, err := b.create(ctx, c, nil)
	if err != nil {
		return err
	}
	for _, to := range []string{id + "/copy", other + "/copy"} {
		if _, err := follow(duplicate(ctx, c, k, id+"/tree", to)); err != nil {
			return fmt.Errorf("to %s: %w", to, err)
		}
		if err := b.eventually(ctx, func() error { return alike(b.at(id, "tree"), b.at(to)) }); err != nil {
			return err
		}
	}
	return nil
}

func copyExists(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, k := range []pb.Capability{pb.Capability_COPY, pb.Capability_CLONE} {
		if !has(r, k) {
			continue
		}
		n++
		if err := errors.Join(os.MkdirAll(b.at(id, "tree"), 0o755), os.MkdirAll(b.at(id, "there"), 0o755), os.WriteFile(b.at(id, "there", "precious"), nil, 0o644)); err != nil {
			return err
		}
		for _, row := range []struct {
			from, to string
			codes    []codes.Code
		}{
			{"/tree", "/there", []codes.Code{codes.AlreadyExists}},
			{"/absent", "/free", []codes.Code{codes.NotFound}},
			{"/tree", "/absent/free", []codes.Code{codes.NotFound}},
			{"/tree", "/tree/inside", []codes.Code{codes.InvalidArgument}},
		} {
			_, err := follow(duplicate(ctx, c, k, id+row.from, id+row.to))
			if err := want(fmt.Sprintf("%v of %s to %s", k, row.from, row.to), err, row.codes...); err != nil {
				return err
			}
		}
		if _, err := os.Stat(b.at(id, "there", "precious")); err != nil {
			return err
		}
		if _, err := os.Lstat(b.at(id, "free")); !os.IsNotExist(err) {
			return fmt.Errorf("the target of a copy of nothing: %v", err)
		}
	}
	if n == 0 {
		return suite.Skip("no COPY, no CLONE")
	}
	return nil
}

func copyCancel(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_COPY) {
		return suite.Skip("no COPY")
	}
	for i := range 20 {
		dir := b.at(id, "tree", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), []byte(strings.Repeat("x", 4096)), 0o644); err != nil {
				return err
			}
		}
	}
	running, cancel := context.WithCancel(ctx)
	s, err := c.CopyTree(running, &pb.CopyRequest{Volume: volumeName, From: id + "/tree", To: id + "/copy"})
	if err != nil {
		cancel()
		return err
	}
	// As soon as a part of the copy exists.
	_ = b.eventually(ctx, func() error {
		_, err := os.Lstat(b.at(id, "copy"))
		return err
	})
	cancel()
	_, err = follow(s, nil)
	if err == nil {
		return suite.Skip("it was done before it could be cancelled")
	}
	return b.eventually(ctx, func() error {
		if _, err := os.Lstat(b.at(id, "copy")); !os.IsNotExist(err) {
			return fmt.Errorf("the target of the cancelled copy is there (%v)", err)
		}
		return nil
	})
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

func scanned(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_SCAN) {
		return suite.Skip("no SCAN")
	}
	if _, _, err := b.grow(id, "tree"); err != nil {
		return err
	}
	for i := range 1500 {
		if err := os.WriteFile(b.at(id, "tree", fmt.Sprintf("many-%d", i)), nil, 0o600); err != nil {
			return err
		}
	}
	_ = os.WriteFile(b.at(id, "tree", "\xff"), nil, 0o600)
	s, err := c.ScanTree(ctx, &pb.TreeRef{Volume: volumeName, Path: id + "/tree"})
	if err != nil {
		return err
	}
	seen := map[string]*pb.Entry{}
	for finished := false; ; {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) && finished {
			break
		}
		if err != nil {
			return err
		}
		if finished || len(m.Entries) > 1024 {
			return fmt.Errorf("a message of %d entries, after the end: %v", len(m.Entries), finished)
		}
		for _, e := range m.Entries {
			if seen[string(e.Path)] != nil {
				return fmt.Errorf("%q is listed twice", e.Path)
			}
			seen[string(e.Path)] = e
		}
		finished = m.Finished
	}
	n := 0
	err = filepath.WalkDir(b.at(id, "tree"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == b.at(id, "tree") {
			return err
		}
		n++
		rel, _ := filepath.Rel(b.at(id, "tree"), p)
		info, err := e.Info()
		if err != nil {
			return err
		}
		kind := pb.Entry_FILE
		switch {
		case e.IsDir():
			kind = pb.Entry_DIRECTORY
		case e.Type()&fs.ModeSymlink != 0:
			kind = pb.Entry_SYMLINK
		}
		got := seen[rel]
		if got == nil || got.Type != kind || kind == pb.Entry_FILE && got.Size != info.Size() {
			return fmt.Errorf("%q is %v of %d bytes, the scan says %v", rel, kind, info.Size(), got)
		}
		return nil
	})
	if err == nil && n != len(seen) {
		err = fmt.Errorf("%d entries, the scan has %d", n, len(seen))
	}
	return err
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
