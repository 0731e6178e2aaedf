package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// The virtual extended attributes of directories in Ceph, which listxattr does not return.
const (
	maxBytes = "ceph.quota.max_bytes"
	maxFiles = "ceph.quota.max_files" // including directories
	bytes    = "ceph.dir.rbytes"      // lengths of all files below
	files    = "ceph.dir.rfiles"      // entries that are not directories
	subdirs  = "ceph.dir.rsubdirs"    // including the directory itself
)

// longest is enough for a decimal number.
const longest = 64

// read reads a number. It reports false if Ceph returns that there is no such attribute, which is
// the case for a quota that is not set.
func read(d *os.File, name string) (n int64, there bool, err error) {
	raw := make([]byte, longest)
	size, err := unix.Fgetxattr(int(d.Fd()), name, raw)
	if errors.Is(err, unix.ENODATA) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, driver.Error("read "+name, err)
	}
	n, err = strconv.ParseInt(strings.TrimRight(string(raw[:size]), "\x00"), 10, 64)
	if err != nil {
		return 0, false, status.Errorf(codes.Internal, "read %s: %q is not a number", name, raw[:size])
	}
	return n, true, nil
}

// count reads a number that every directory has.
func count(d *os.File, name string) (int64, error) {
	n, there, err := read(d, name)
	if err == nil && !there {
		err = fmt.Errorf("read %s: %w", name, unix.EOPNOTSUPP)
	}
	return n, err
}

// write sets a quota. Zero removes it; removing the attribute does not.
func write(d *os.File, name string, n int64) error {
	if n == 0 {
		if _, there, err := read(d, name); err != nil || !there {
			return err
		}
	}
	return unix.Fsetxattr(int(d.Fd()), name, strconv.AppendInt(nil, n, 10), 0)
}
