package volume

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/folderpath"
)

// Clean checks a path below a folder and returns its clean form; "" is the folder itself. It
// rejects paths that leave the folder.
func Clean(path string) (string, error) {
	if path == "" || path == "." {
		return "", nil
	}
	path = strings.TrimSuffix(path, "/")
	if fault := folderpath.Fault(path); fault != "" {
		return "", invalid("path %.80q: %s", path, fault)
	}
	return path, nil
}

// CleanNew is Clean for a path to create. It also rejects the folder itself, names that not
// every client can read, and more levels than archives and copies support. Containers can
// create such paths, but the proxy does not.
func CleanNew(path string) (string, error) {
	path, err := Clean(path)
	if err != nil {
		return "", err
	}
	if fault := folderpath.NewFault(path); fault != "" {
		return "", invalid("path %.80q: %s", path, fault)
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

// FolderPath returns the path of a folder below the volume's root. Two levels of prefixes keep
// directories small.
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
