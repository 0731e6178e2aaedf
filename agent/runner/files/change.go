package files

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/containerfile"
)

// mkdir creates a directory and its missing parents.
func (s *server) mkdir(path string) error {
	if info, err := os.Lstat(path); err == nil {
		if info.IsDir() {
			return fail(containerfile.Exists, "%s already exists", quote(path))
		}
		return fail(containerfile.Exists, "%s already exists and is not a directory", quote(path))
	}
	return os.MkdirAll(path, 0o777)
}

// move renames files and directories, each with its own result.
func (s *server) move(q containerfile.Request) []containerfile.Result {
	results := make([]containerfile.Result, len(q.Items))
	for i, item := range q.Items {
		results[i].Path = item.From
		if err := s.moveOne(s.abs(item.From), s.abs(item.To), q.Overwrite); err != nil {
			results[i].Failure = failureOf(err)
		}
	}
	return results
}

func (s *server) moveOne(from, to string, overwrite bool) error {
	if strings.HasPrefix(to+"/", from+"/") {
		return fail(containerfile.Invalid, "%s cannot be moved into itself", quote(from))
	}
	if !overwrite {
		return renameNew(from, to)
	}
	if info, err := os.Lstat(to); err == nil && info.IsDir() {
		return fail(containerfile.Precondition, "%s is a directory, which is not replaced", quote(to))
	}
	return os.Rename(from, to)
}

// remove deletes files and, if recursive, directories with their contents.
func (s *server) remove(q containerfile.Request) ([]containerfile.Result, error) {
	mounts, err := mountPoints("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return s.each(q.Paths, func(path string) error {
		if _, err := os.Lstat(path); err != nil {
			return err
		}
		for _, m := range mounts {
			switch {
			case m == path:
				return fail(containerfile.Precondition, "%s is mounted, for example a folder; it can be emptied, but not deleted", quote(path))
			case strings.HasPrefix(m+"/", strings.TrimSuffix(path, "/")+"/"):
				return fail(containerfile.Precondition, "%s is mounted below %s, for example a folder; nothing was deleted", quote(m), quote(path))
			}
		}
		if q.Recursive {
			return os.RemoveAll(path)
		}
		return os.Remove(path)
	}), nil
}

// mountPoints returns the mount points in a table. Deleting a directory must not delete the files
// of a folder that is mounted below it.
func mountPoints(table string) ([]string, error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if part := strings.Fields(lines.Text()); len(part) > 4 {
			list = append(list, filepath.Clean(unescape(part[4])))
		}
	}
	return list, lines.Err()
}

// unescape replaces the octal codes that the kernel writes for spaces and backslashes.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
