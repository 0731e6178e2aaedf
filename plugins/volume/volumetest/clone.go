package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/suite"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var cloneChecks = []Check{
	{"clone", "a clone has every entry with its content and mode, links as links", cloned},
	{"clone-apart", "what is written later to one side of a clone is not seen on the other", cloneApart},
	{"clone-shares", "a clone of 64 MiB takes less than 8 MiB", cloneShares},
}

func cloned(ctx context.Context, b *bench) error { return b.copies(ctx, pb.Capability_CLONE) }

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
	if _, err := follow(duplicate(ctx, c, pb.Capability_CLONE, id+"/tree", id+"/clone")); err != nil {
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
			return fmt.Errorf("what was written to the %s is not there, but %q", side, raw[4096:4096+len(text)])
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
	if _, err := follow(duplicate(ctx, c, pb.Capability_CLONE, id+"/tree", id+"/clone")); err != nil {
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
