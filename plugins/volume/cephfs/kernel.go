package main

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// release is the running kernel's.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "" // which keeps
	}
	return unix.ByteSliceToString(u.Release[:])
}

// keeps reports whether a kernel's client keeps quotas, as from 4.17 on; one whose
// release cannot be read is taken for a new one.
func keeps(release string) bool {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, merr := strconv.Atoi(strings.TrimRight(second, "-+abcdefghijklmnopqrstuvwxyz"))
	return err != nil || merr != nil || major > 4 || major == 4 && minor >= 17
}
