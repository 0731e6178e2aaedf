package main

import (
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// Abilities that a mount can lack, with the names of the option accept.
const (
	noCase     = "case"
	noModes    = "modes"
	noOwners   = "owners"
	noSymlinks = "symlinks"
	noText     = "text"
)

// lacks describes missing abilities to people.
var lacks = map[string]string{
	noCase:     `option accept: names that differ by case alone are one file on this share, and the later file replaces the earlier one; make the share case sensitive, or accept "case"`,
	noModes:    `option accept: modes of files are not kept; mount with modefromsid, or accept "modes"`,
	noOwners:   `option accept: owners of files are not kept; mount with idsfromsid, or accept "owners"`,
	noText:     `option accept: names can only use some scripts; mount with iocharset=utf8, or accept "text"`,
	noSymlinks: `option accept: there are no symbolic links; mount with mfsymlinks, or accept "symlinks"`,
}

// oneName reports whether names that differ only by case refer to the same file. It looks up
// existing names in another case. Inode numbers are not reliable for this, because the client
// generates them when it distrusts the server's.
func oneName(m *driver.Mount) (bool, error) {
	root, err := m.Root()
	if err != nil {
		return false, err
	}
	defer root.Close()
	other := strings.ToUpper(driver.Own)
	if !found(int(root.Fd()), other) {
		return false, nil
	}
	names, err := root.Readdirnames(-1)
	return err == nil && !slices.Contains(names, other), driver.Error("look for names", err)
}

// found reports whether a name exists in a directory.
func found(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// probe tests the abilities of the mount in a directory of the plugin, and returns those that are
// missing. It removes everything it creates.
func probe(m *driver.Mount) (out []string, err error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fd := int(root.Fd())
	if err := unix.Mkdirat(fd, driver.Own, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, driver.Error("probe", err)
	}
	name := driver.Own + "/probe-" + rand.Text()
	if err := unix.Mkdirat(fd, name, 0o700); err != nil {
		return nil, driver.Error("probe", err)
	}
	defer func() {
		err = errors.Join(err, driver.Error("remove probe", unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)))
	}()
	d, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, driver.Error("probe", err)
	}
	defer unix.Close(d)
	return try(d)
}

// owner is a user without files.
const owner = 65533

// try performs the operations of programs in an empty directory, and undoes them.
func try(d int) (out []string, err error) {
	f, err := unix.Openat(d, "file", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, driver.Error("probe", err)
	}
	defer func() { err = errors.Join(err, driver.Error("remove probe", unix.Unlinkat(d, "file", 0))) }()
	defer unix.Close(f)
	if found(d, "FILE") {
		out = append(out, noCase)
	}
	for _, mode := range []uint32{0o640, 0o755} {
		var st unix.Stat_t
		err := errors.Join(unix.Fchmod(f, mode), unix.Fstat(f, &st))
		if err != nil || st.Mode&0o777 != mode {
			out = append(out, noModes)
			break
		}
	}
	if os.Geteuid() == 0 { // other users cannot
		var st unix.Stat_t
		if err := errors.Join(unix.Fchown(f, owner, owner), unix.Fstat(f, &st)); err != nil || st.Uid != owner || st.Gid != owner {
			out = append(out, noOwners)
		}
	}
	ok, err := linked(d)
	if err != nil {
		return nil, err
	}
	if !ok {
		out = append(out, noSymlinks)
	}
	if unix.Mkdirat(d, script, 0o700) != nil {
		return append(out, noText), nil
	}
	return out, driver.Error("remove probe", unix.Unlinkat(d, script, unix.AT_REMOVEDIR))
}

// script is a name of maximum length. A mount without UTF-8 treats each letter as two characters,
// stores a short name as another one, and cannot store this one.
var script = strings.Repeat("é", 127)

// linked reports whether a symbolic link keeps its target.
func linked(d int) (bool, error) {
	const to = "target"
	if unix.Symlinkat(to, d, "link") != nil {
		return false, nil
	}
	target := make([]byte, len(to)+1)
	n, err := unix.Readlinkat(d, "link", target)
	return err == nil && string(target[:max(n, 0)]) == to, driver.Error("remove probe", unix.Unlinkat(d, "link", 0))
}
