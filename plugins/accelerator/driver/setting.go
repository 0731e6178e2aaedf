package driver

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	maxPath = 256
	maxIDs  = 64
)

// PathSetting returns an error that names the setting if p is not a clean absolute path.
func PathSetting(field, p string) error {
	if len(p) > maxPath || !strings.HasPrefix(p, "/") || path.Clean(p) != p || p == "/" {
		return fmt.Errorf("config_json: %s: %.80q: want an absolute path without .. of at most %d bytes", field, p, maxPath)
	}
	return nil
}

var deviceForm = regexp.MustCompile(`^[0-9a-f]{4}$`)

// DeviceIDsSetting returns an error that names the setting if an id is not a valid PCI device id.
func DeviceIDsSetting(field string, ids []string) error {
	if n := len(ids); n > maxIDs {
		return fmt.Errorf("config_json: %s: %d, want at most %d", field, n, maxIDs)
	}
	for i, id := range ids {
		if !deviceForm.MatchString(id) {
			return fmt.Errorf("config_json: %s[%d]: %.40q: want four of 0-9 a-f", field, i, id)
		}
	}
	return nil
}

// Dir creates a directory below the one that the agent provides for the allocation and removes with
// it.
func (r *Request) Dir(elem ...string) (string, error) {
	if work := r.GetWorkDir(); !filepath.IsAbs(work) {
		return "", status.Errorf(codes.InvalidArgument, "work_dir: %.200q is not absolute", work)
	}
	dir := filepath.Join(append([]string{r.GetWorkDir()}, elem...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("directory of the allocation: %w", err)
	}
	return dir, nil
}
