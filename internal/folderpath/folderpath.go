// Package folderpath has the rules for paths below a folder. Managers and storage proxies import
// it, so that a proxy can create every name that a manager accepts.
package folderpath

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxName is the length of the longest name in bytes, which all known file systems support.
	MaxName = 255
	// MaxPath is the length of the longest path in bytes, the kernel's PATH_MAX.
	MaxPath = 4096
	// MaxDepth is the largest number of names in a new path: archives and copies support this
	// depth.
	MaxDepth = 512
)

// Fault returns the reason why a text cannot be a path below a folder, or "". A path is relative
// and clean, with names between single slashes; names can contain any other bytes, because
// containers may have created them.
func Fault(path string) string {
	switch {
	case path == "":
		return "is empty"
	case len(path) > MaxPath:
		return fmt.Sprintf("has %d bytes, at most %d", len(path), MaxPath)
	case strings.IndexByte(path, 0) >= 0:
		return "has a NUL byte"
	case path[0] == '/':
		return "is absolute"
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "..":
			return "leaves the folder"
		case name == "" || name == ".":
			return "has an empty part"
		case len(name) > MaxName:
			return fmt.Sprintf("has a name of %d bytes, at most %d", len(name), MaxName)
		}
	}
	return ""
}

// NewFault is Fault for a path that is to be created, whose names must be readable and which must
// not be too deep.
func NewFault(path string) string {
	if fault := Fault(path); fault != "" {
		return fault
	}
	if fault := illegible(path); fault != "" {
		return fault
	}
	if strings.ContainsRune(path, utf8.RuneError) {
		// JSON decoders put it in the place of an incomplete character.
		return "has U+FFFD, which stands for a character that could not be read"
	}
	if n := Depth(path); n > MaxDepth {
		return fmt.Sprintf("is %d levels deep, at most %d", n, MaxDepth)
	}
	return ""
}

// Legible reports whether every client can write a name.
func Legible(name string) bool { return illegible(name) == "" }

func illegible(text string) string {
	if !utf8.ValidString(text) {
		return "is not UTF-8"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
		return "has a control character"
	}
	return ""
}

// Depth returns the number of names in a path.
func Depth(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "/") + 1
}
