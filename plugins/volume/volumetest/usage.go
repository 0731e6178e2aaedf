package volumetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var usageChecks = []Check{
	{"usage", "the usage of a scope follows writes, within 1 % or 4 MiB of du, and falls with deletion", usage},
	{"usage-names", "files whose names have 255 bytes, are not text or have line breaks count, and a second name does not", usageNames},
	{"usage-links", "links that were planted in a scope are not followed when it is measured", usageLinks},
	{"usage-tree", "TreeUsage of a tree is within 1 % or 4 MiB of du", usageTree},
}

// fill writes a file that no product can compress, and waits until it is stored.
func fill(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, random(), size)
	return errors.Join(err, f.Sync(), f.Close())
}

func random() io.Reader {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	return rand.NewChaCha8(seed)
}

// uses waits until the usage of a scope matches that of du.
func (b *bench) uses(ctx context.Context, c *volume.Client, id string, size int64) error {
	return b.eventually(ctx, func() error {
		s, err := c.GetScope(ctx, ref(id))
		if err != nil {
			return err
		}
		if s.UsedBytes == nil {
			return errors.New("the usage is not known")
		}
		if err := near(*s.UsedBytes, size); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		return recent(s.AsOfUnixMs)
	})
}

// near accepts a difference of 1 % or 4 MiB.
func near(got, want int64) error {
	if off := got - want; max(off, -off) > max(want/100, 4<<20) {
		return fmt.Errorf("%d bytes, want about %d", got, want)
	}
	return nil
}

func usage(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	const size = 16 << 20
	for _, name := range []string{"a", "b"} {
		if err := fill(b.at(id, name), size/2); err != nil {
			return err
		}
	}
	if !b.plugin.Environment.Lengths {
		if err := hole(b.at(id, "hole")); err != nil {
			return err
		}
	}
	du, err := volume.Usage(ctx, b.at(id))
	if err != nil {
		return err
	}
	if err := near(du.Bytes, size); err != nil {
		return fmt.Errorf("the disk: %w", err)
	}
	if err := b.uses(ctx, c, id, du.Bytes); err != nil {
		return err
	}
	if err := os.Remove(b.at(id, "a")); err != nil {
		return err
	}
	return b.uses(ctx, c, id, size/2)
}

// hole creates a sparse file without data.
func hole(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return nil // without sparse files there is nothing to check
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil && os.Remove(path) != nil {
		return err // 1 TiB can exceed the product's maximum size of a file
	}
	return nil
}

func usageNames(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	dir := b.at(id, strings.Repeat("d", 255))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	const size = 1 << 20
	var total int64
	for _, name := range []string{strings.Repeat("f", 255), strings.Repeat("é", 127), "line\nbreak", "\xff\xfe", "-rf *", "日本語 🚢", `"quo'ted"`, "$(id)`id`"} {
		err := fill(filepath.Join(dir, name), size)
		if err != nil && name[0] == 0xff { // the file system supports only text in names
			continue
		}
		if err != nil {
			return err
		}
		total += size
	}
	if err := fill(b.at(id, "big"), 16<<20); err != nil {
		return err
	}
	if err := os.Link(b.at(id, "big"), filepath.Join(dir, "again")); err != nil && !errors.Is(err, os.ErrPermission) {
		return suite.Note("it does not support hard links: " + err.Error())
	}
	total += 16 << 20
	if b.plugin.Environment.Names {
		total += 16 << 20
	}
	return b.uses(ctx, c, id, total)
}

// plant creates links to a large file and its directory in a scope.
func (b *bench) plant(id string) error {
	out := filepath.Join(b.dir, "outside")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for i := range 4 {
		if err := fill(filepath.Join(out, fmt.Sprint(i)), 8<<20); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink(out, b.at(id, "to-directory")), os.Symlink(filepath.Join(out, "1"), b.at(id, "to-file")),
		os.Symlink("..", b.at(id, "to-all-scopes")), os.Symlink(".", b.at(id, "to-itself")))
}

func usageLinks(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if err := b.plant(id); err != nil {
		return suite.Skip("no links: " + err.Error())
	}
	if err := fill(b.at(id, "data"), 8<<20); err != nil {
		return err
	}
	return b.uses(ctx, c, id, 8<<20)
}

func usageTree(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_USAGE_FAST) {
		return suite.Skip("no USAGE_FAST")
	}
	files, directories, err := b.grow(id, "tree")
	if err != nil {
		return err
	}
	if err := fill(b.at(id, "tree", "big"), 16<<20); err != nil {
		return err
	}
	if err := fill(b.at(id, "beside"), 32<<20); err != nil {
		return err
	}
	du, err := volume.Usage(ctx, b.at(id, "tree"))
	if err != nil {
		return err
	}
	return b.eventually(ctx, func() error {
		u, err := c.TreeUsage(ctx, &pb.TreeRef{Volume: volumeName, Path: id + "/tree"})
		if err != nil {
			return err
		}
		if err := near(u.Bytes, du.Bytes); err != nil {
			return err
		}
		if u.Exact && (u.Files != int64(files)+1 || u.Directories != int64(directories)) {
			return fmt.Errorf("%d files and %d directories, want %d and %d", u.Files, u.Directories, files+1, directories)
		}
		return recent(u.AsOfUnixMs)
	})
}

// grow creates a tree with all kinds of entries, and counts the entries below its root.
func (b *bench) grow(id, name string) (files, directories int, err error) {
	root := b.at(id, name)
	for i := range 5 {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i), "empty", strings.Repeat("n", 100))
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
		directories += 3
		for j := range 10 {
			err = errors.Join(err, os.WriteFile(filepath.Join(root, fmt.Sprintf("d%d", i), fmt.Sprintf("file %d ü\n", j)), []byte(fmt.Sprint(i, j)), 0o640))
			files++
		}
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(root, "run.sh"), []byte("#!"), 0o755), os.Symlink("/etc/passwd", filepath.Join(root, "link")))
	return files + 2, directories, err
}
