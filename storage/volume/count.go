package volume

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// counter counts the entries of trees, and the bytes of files if they must be copied. The
// result is approximate if the tree changes meanwhile.
type counter struct {
	ctx   context.Context
	sizes bool // count bytes too, which needs a stat for each file
	files int64
	bytes int64
	links map[inode]bool // files with several names that were counted
}

// count counts an entry and its contents.
func (c *counter) count(dir *os.File, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return vanished(err)
	}
	c.files++
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return c.below(dir, name, 0)
	}
	c.add(&st)
	return nil
}

// below counts the contents of a directory.
func (c *counter) below(dir *os.File, name string, depth int) error {
	if depth > walkDepth {
		return nil
	}
	d, err := openDir(dir, name, inside)
	if err != nil {
		return vanished(err)
	}
	defer d.Close()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	var dirs []string
	err = eachEntry(d, func(name []byte, kind byte) {
		c.files++
		if kind = kindOf(d, string(name), kind); kind == unix.DT_DIR {
			dirs = append(dirs, string(name))
		}
		if c.sizes && kind == unix.DT_REG {
			var st unix.Stat_t
			if unix.Fstatat(int(d.Fd()), string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				c.add(&st)
			}
		}
	})
	if err != nil {
		return vanished(err)
	}
	for _, name := range dirs {
		if err := c.below(d, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) add(st *unix.Stat_t) {
	if !c.sizes || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	if st.Nlink > 1 {
		id := inode{st.Dev, st.Ino}
		if c.links[id] {
			return
		}
		if c.links == nil {
			c.links = make(map[inode]bool)
		}
		c.links[id] = true
	}
	c.bytes += st.Size
}

// maxLooks limits the names that are checked for the depth of a tree. A larger tree is assumed
// not to be too deep.
const maxLooks = 100_000

// deeper reports whether a tree has more than the given number of levels below its top.
func deeper(dir *os.File, name string, levels int) bool {
	looks := maxLooks
	var below func(dir *os.File, name string, levels int) bool
	below = func(dir *os.File, name string, levels int) bool {
		d, err := openDir(dir, name, inside)
		if err != nil {
			return false
		}
		defer d.Close()
		var dirs []string
		found := false
		_ = eachEntry(d, func(name []byte, kind byte) {
			looks--
			found = true
			if looks > 0 && kindOf(d, string(name), kind) == unix.DT_DIR {
				dirs = append(dirs, string(name))
			}
		})
		if found && levels <= 0 {
			return true
		}
		for _, name := range dirs {
			if looks > 0 && below(d, name, levels-1) {
				return true
			}
		}
		return false
	}
	return below(dir, name, levels)
}

// vanished returns nil for errors of an entry that was removed or replaced after it was
// listed.
func vanished(err error) error {
	for _, gone := range []error{unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.EXDEV} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}
