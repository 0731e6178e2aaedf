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

// What a mount may lack, as the option accept names it.
const (
	noCase     = "case"
	noModes    = "modes"
	noOwners   = "owners"
	noSymlinks = "symlinks"
	noText     = "text"
)

// lacks says it to people.
var lacks = map[string]string{
	noCase:     `option accept: names that differ by case alone are one file on this share, and the later takes the earlier's place; make the share case sensitive, or accept "case"`,
	noModes:    `option accept: modes of files are not kept; mount with modefromsid, or accept "modes"`,
	noOwners:   `option accept: owners of files are not kept; mount with idsfromsid, or accept "owners"`,
	noText:     `option accept: names can only be of some scripts; mount with iocharset=utf8, or accept "text"`,
	noSymlinks: `option accept: there are no symbolic links; mount with mfsymlinks, or accept "symlinks"`,
}

// oneName tells, from what is there already, whether names that differ by case alone are
// one: whether something is found that is in no list. Numbers of inodes do not tell, the
// client makes them up where it doubts the server's.
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

// found reports whether a name in a directory leads to something.
func found(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// probe tries out what the mount can, in a directory of our own, and returns what it
// lacks. Nothing is left behind.
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

// owner is a user whose files there are none of.
const owner = 65533

// try does in an empty directory what programs do, and takes it back.
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
	if os.Geteuid() == 0 { // others may not
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

// script is a name as long as can be. A mount without UTF-8 takes each letter for two,
// keeps short names as something else, and cannot keep this one.
var script = strings.Repeat("é", 127)

// linked reports whether a symbolic link keeps where it leads.
func linked(d int) (bool, error) {
	const to = "target"
	if unix.Symlinkat(to, d, "link") != nil {
		return false, nil
	}
	target := make([]byte, len(to)+1)
	n, err := unix.Readlinkat(d, "link", target)
	return err == nil && string(target[:max(n, 0)]) == to, driver.Error("remove probe", unix.Unlinkat(d, "link", 0))
}
