package main

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// release returns the release of the running kernel.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "" // counts as a new kernel
	}
	return unix.ByteSliceToString(u.Release[:])
}

// keeps reports whether a kernel's client enforces quotas, as it does from 4.17 on. It reports true
// for a release that cannot be parsed.
func keeps(release string) bool {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, merr := strconv.Atoi(strings.TrimRight(second, "-+abcdefghijklmnopqrstuvwxyz"))
	return err != nil || merr != nil || major > 4 || major == 4 && minor >= 17
}
