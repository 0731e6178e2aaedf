// Package folderpath has the rules for paths below a folder. Managers and storage proxies
// import it, so that a name which a manager accepts is a name that a proxy makes.
package folderpath

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxName is the longest name in bytes, which every file system we know allows.
	MaxName = 255
	// MaxPath is the longest path in bytes, the kernel's PATH_MAX.
	MaxPath = 4096
	// MaxDepth is how many names a new path has at most: archives and copies go as deep.
	MaxDepth = 512
)

// Fault says why something cannot be a path below a folder, and "" of one that can. A path
// is relative and clean, with names between single slashes; containers may have put any
// other bytes into the names.
func Fault(path string) string {
	switch {
	case path == "":
		return "is empty"
	case len(path) > MaxPath:
		return fmt.Sprintf("has %d bytes, at most %d", len(path), MaxPath)
	case strings.IndexByte(path, 0) >= 0:
		return "holds a NUL byte"
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

// NewFault is Fault for a path that is to be made, which has readable names and is not
// too deep.
func NewFault(path string) string {
	if fault := Fault(path); fault != "" {
		return fault
	}
	if fault := illegible(path); fault != "" {
		return fault
	}
	if strings.ContainsRune(path, utf8.RuneError) {
		// JSON decoders put it in the place of half a character.
		return "holds U+FFFD, which stands for a character that could not be read"
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
		return "holds a control character"
	}
	return ""
}

// Depth is how many names a path has.
func Depth(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "/") + 1
}
