package volume

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
)

const (
	maxName = 255  // bytes, what every file system we know allows
	maxPath = 4096 // bytes, the kernel's PATH_MAX
)

// Clean checks a path below a folder and returns its plain form; "" is the
// folder itself. It refuses what cannot be a path inside the folder: absolute,
// with "..", NUL, an empty or too long part.
func Clean(path string) (string, error) {
	if path == "" || path == "." {
		return "", nil
	}
	if len(path) > maxPath {
		return "", invalid("path: %d bytes, at most %d", len(path), maxPath)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "", invalid("path: holds a NUL byte")
	}
	if path[0] == '/' {
		return "", invalid("path %q: is absolute", path)
	}
	path = strings.TrimSuffix(path, "/")
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "..":
			return "", invalid("path %q: leaves the folder", path)
		case part == "" || part == ".":
			return "", invalid("path %q: has an empty part", path)
		case len(part) > maxName:
			return "", invalid("path: a name of %d bytes, at most %d", len(part), maxName)
		}
	}
	return path, nil
}

// CleanNew is Clean for a path that is to be made. It also refuses the folder
// itself, control characters and bytes that are no UTF-8: such names may come
// from containers, we do not add to them.
func CleanNew(path string) (string, error) {
	path, err := Clean(path)
	if err != nil {
		return "", err
	}
	if path == "" {
		return "", invalid("path: is empty")
	}
	if !utf8.ValidString(path) {
		return "", invalid("path %q: is not UTF-8", path)
	}
	for _, r := range path {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return "", invalid("path %q: holds a control character", path)
		}
	}
	return path, nil
}

// hexID returns a uuid as 32 lower-case hex digits, its spelling on disk.
func hexID(what, id string) (string, error) {
	if len(id) == 36 || len(id) == 32 {
		if u, err := uuid.Parse(id); err == nil {
			return hex.EncodeToString(u[:]), nil
		}
	}
	return "", invalid("%s %q: is not a uuid", what, id)
}

// FolderPath is where a folder lies below the volume's root. Two levels of
// prefixes keep directories small.
func FolderPath(scope, folder string) (string, error) {
	s, err := hexID("scope", scope)
	if err != nil {
		return "", err
	}
	f, err := hexID("folder", folder)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{s, f[:2], f[2:4], f[4:]}, "/"), nil
}

func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}
