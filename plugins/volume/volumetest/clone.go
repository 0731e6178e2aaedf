package volumetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var cloneChecks = []Check{
	{"clone", "a clone has every entry with its content and mode, links as links; progress grows and ends", cloned},
	{"clone-exists", "a clone onto something that exists is ALREADY_EXISTS and changes nothing, of nothing NOT_FOUND", cloneExists},
	{"clone-cancel", "a clone that is cancelled leaves no target", cloneCancel},
	{"clone-apart", "what is written later to one side of a clone is not seen on the other", cloneApart},
	{"clone-shares", "a clone of 64 MiB takes less than 8 MiB", cloneShares},
}

// clone calls CloneTree.
func clone(ctx context.Context, c *volume.Client, from, to string) (grpc.ServerStreamingClient[pb.Progress], error) {
	return c.CloneTree(ctx, &pb.CopyRequest{Volume: volumeName, From: from, To: to})
}

func cloned(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CLONE) {
		return suite.Skip("no CLONE")
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
		if _, err := follow(clone(ctx, c, id+"/tree", to)); err != nil {
			return fmt.Errorf("to %s: %w", to, err)
		}
		if err := b.eventually(ctx, func() error { return alike(b.at(id, "tree"), b.at(to)) }); err != nil {
			return err
		}
	}
	return nil
}

func cloneExists(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CLONE) {
		return suite.Skip("no CLONE")
	}
	if err := errors.Join(os.MkdirAll(b.at(id, "tree"), 0o755), os.MkdirAll(b.at(id, "there"), 0o755), os.WriteFile(b.at(id, "there", "precious"), nil, 0o644)); err != nil {
		return err
	}
	for _, row := range []struct {
		from, to string
		code     codes.Code
	}{
		{"/tree", "/there", codes.AlreadyExists},
		{"/absent", "/free", codes.NotFound},
		{"/tree", "/absent/free", codes.NotFound},
		{"/tree", "/tree/inside", codes.InvalidArgument},
	} {
		_, err := follow(clone(ctx, c, id+row.from, id+row.to))
		if err := want(fmt.Sprintf("a clone of %s to %s", row.from, row.to), err, row.code); err != nil {
			return err
		}
	}
	if _, err := os.Stat(b.at(id, "there", "precious")); err != nil {
		return err
	}
	if _, err := os.Lstat(b.at(id, "free")); !os.IsNotExist(err) {
		return fmt.Errorf("the target of a clone of nothing: %v", err)
	}
	return nil
}

func cloneCancel(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CLONE) {
		return suite.Skip("no CLONE")
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
	s, err := clone(running, c, id+"/tree", id+"/clone")
	if err != nil {
		cancel()
		return err
	}
	// As soon as there is something of it.
	_ = b.eventually(ctx, func() error {
		_, err := os.Lstat(b.at(id, "clone"))
		return err
	})
	cancel()
	_, err = follow(s, nil)
	if err == nil {
		return suite.Skip("it was done before it could be cancelled")
	}
	return b.eventually(ctx, func() error {
		if _, err := os.Lstat(b.at(id, "clone")); !os.IsNotExist(err) {
			return fmt.Errorf("the target of the cancelled clone exists (%v)", err)
		}
		return nil
	})
}

func cloneApart(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CLONE) {
		return suite.Skip("no CLONE")
	}
	if err := errors.Join(os.Mkdir(b.at(id, "tree"), 0o755), fill(b.at(id, "tree", "file"), 1<<20)); err != nil {
		return err
	}
	if _, err := follow(clone(ctx, c, id+"/tree", id+"/clone")); err != nil {
		return err
	}
	for _, side := range []string{"tree", "clone"} {
		f, err := os.OpenFile(b.at(id, side, "file"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("written to the "+side), 4096)
		if err := errors.Join(err, f.Sync(), f.Close(), os.WriteFile(b.at(id, side, "new in "+side), nil, 0o644)); err != nil {
			return err
		}
	}
	for side, other := range map[string]string{"tree": "clone", "clone": "tree"} {
		raw, err := os.ReadFile(b.at(id, side, "file"))
		if err != nil {
			return err
		}
		if text := "written to the " + side; string(raw[4096:4096+len(text)]) != text {
			return fmt.Errorf("the block written to the %s reads as %q", side, raw[4096:4096+len(text)])
		}
		if _, err := os.Lstat(b.at(id, side, "new in "+other)); !os.IsNotExist(err) {
			return fmt.Errorf("a file made in the %s is in the %s", other, side)
		}
	}
	return nil
}

func cloneShares(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CLONE) {
		return suite.Skip("no CLONE")
	}
	if b.plugin.Mount == "" {
		return suite.Skip("others write to this disk too")
	}
	const size, most = 64 << 20, 8 << 20
	if err := errors.Join(os.Mkdir(b.at(id, "tree"), 0o755), fill(b.at(id, "tree", "file"), size)); err != nil {
		return err
	}
	before, err := b.used()
	if err != nil {
		return err
	}
	if _, err := follow(clone(ctx, c, id+"/tree", id+"/clone")); err != nil {
		return err
	}
	after, err := b.used()
	if err != nil {
		return err
	}
	if after-before > most {
		return fmt.Errorf("it took %d bytes", after-before)
	}
	return suite.Note(fmt.Sprintf("%d KiB", (after-before)>>10))
}

// used syncs the file system and returns the bytes that it stores.
func (b *bench) used() (int64, error) {
	f, err := os.Open(b.mount)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := errors.Join(unix.Syncfs(int(f.Fd())), unix.Fstatfs(int(f.Fd()), &st)); err != nil {
		return 0, err
	}
	return int64(st.Blocks-st.Bfree) * max(st.Frsize, 1), nil
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
