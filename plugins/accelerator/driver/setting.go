package driver

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
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
		return fmt.Errorf("config_json: %s: %.80q must be an absolute path without .. of at most %d bytes", field, p, maxPath)
	}
	return nil
}

var deviceForm = regexp.MustCompile(`^[0-9a-f]{4}$`)

// DeviceIDsSetting returns an error that names the setting if an id is not a valid PCI device id.
func DeviceIDsSetting(field string, ids []string) error {
	if n := len(ids); n > maxIDs {
		return fmt.Errorf("config_json: %s: %d are more than %d", field, n, maxIDs)
	}
	for i, id := range ids {
		if !deviceForm.MatchString(id) {
			return fmt.Errorf("config_json: %s[%d]: %.40q must be four of 0-9 a-f", field, i, id)
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

var (
	quantityForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(\D*)$`)
	quantities   = map[string]float64{
		"": 1, "b": 1, "bytes": 1, "c": 1, "°c": 1, "w": 1, "%": 1, "mhz": 1, "mw": 1e-3, "ghz": 1e3,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}
)

// Quantity parses values that programs print for people, such as "37C", "19.5 W", "15.7GiB" and 12,
// and converts them to a metric's unit: bytes, watt, celsius, percent or mhz.
func Quantity(text Scalar) (float64, error) {
	found := quantityForm.FindStringSubmatch(strings.TrimSpace(string(text)))
	if found == nil {
		return 0, fmt.Errorf("%q is not a quantity", Clean(string(text), 40))
	}
	scale, ok := quantities[strings.ToLower(strings.TrimSpace(found[2]))]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit", Clean(string(text), 40))
	}
	n, err := strconv.ParseFloat(found[1], 64)
	return n * scale, err
}
