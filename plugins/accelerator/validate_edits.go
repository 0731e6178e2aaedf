package accelerator

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Limits of one response to Prepare, which allow 64 devices with 8 nodes each.
const (
	maxEdits = 1024     // nodes and mounts together
	maxEnv   = 32 << 10 // of one variable
)

// ValidateEdits checks the form of container edits: clean absolute paths, unique targets, and no
// mount over the container's root or kernel file systems. The host's policy decides which edits a
// plugin can request beyond that.
func ValidateEdits(e *pb.ContainerEdits) error {
	var is issues
	if n := len(e.GetDeviceNodes()) + len(e.GetMounts()); n > maxEdits {
		is.add("%d device nodes and mounts are more than %d", n, maxEdits)
		return is.err()
	}
	is.entries("env", len(e.GetEnv()))
	is.entries("library_dirs and preload_libs", len(e.GetLibraryDirs())+len(e.GetPreloadLibs()))
	is.entries("rlimits", len(e.GetRlimits()))
	is.entries("additional_gids", len(e.GetAdditionalGids()))
	seen := map[string]bool{}
	target := func(what, p string) {
		switch {
		case !clean(p):
			is.add("%s %.200q is not a clean absolute path", what, p)
		case p == "/" || p == "/dev" || p == "/proc" || p == "/sys" || strings.HasPrefix(p, "/proc/"):
			is.add("%s %q may not be replaced", what, p)
		case seen[p]:
			is.add("%s %q is listed twice", what, p)
		}
		seen[p] = true
	}
	for _, n := range e.GetDeviceNodes() {
		target("device node", n.GetPath())
		if h := n.GetHostPath(); h != "" && !clean(h) {
			is.add("device node's host path %.200q is not a clean absolute path", h)
		}
		if strings.Trim(n.GetPermissions(), "rwm") != "" {
			is.add("device node %q: permissions %q", n.GetPath(), n.GetPermissions())
		}
	}
	for _, m := range e.GetMounts() {
		target("mount", m.GetTarget())
		if !clean(m.GetSource()) {
			is.add("mount source %.200q is not a clean absolute path", m.GetSource())
		}
	}
	for k, v := range e.GetEnv() {
		if !envForm.MatchString(k) || strings.ContainsRune(v, 0) || len(v) > maxEnv {
			is.add("environment variable %.80q is malformed", k)
		}
	}
	for _, p := range slices.Concat(e.GetLibraryDirs(), e.GetPreloadLibs()) {
		if !clean(p) || strings.ContainsAny(p, ": ") {
			is.add("library path %.200q is not a clean absolute path", p)
		}
	}
	for _, r := range e.GetRlimits() {
		if r.GetName() == "" || r.GetSoft() > r.GetHard() {
			is.add("rlimit %q: soft %d, hard %d", r.GetName(), r.GetSoft(), r.GetHard())
		}
	}
	return is.err()
}

func clean(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// ValidateMetric checks one metric. Hosts drop metrics that fail.
func ValidateMetric(key string, m *pb.Metric) error {
	switch {
	case len(m.GetName()) > 128 || len(m.GetUnit()) > 32:
		return fmt.Errorf("metric %.80q: the name can have at most 128 bytes, and the unit at most 32", m.GetName())
	case !strings.HasPrefix(m.GetName(), key+"_"):
		return fmt.Errorf("metric %.80q does not begin with %q", m.GetName(), key+"_")
	case m.GetQuality() == pb.Metric_UNKNOWN || pb.Metric_Quality_name[int32(m.GetQuality())] == "":
		return fmt.Errorf("metric %q has no quality", m.GetName())
	case m.GetQuality() == pb.Metric_UNAVAILABLE:
		return nil
	case m.GetKind() == pb.Metric_UNSPECIFIED || m.GetUnit() == "":
		return fmt.Errorf("metric %q has no kind or no unit", m.GetName())
	case m.GetKind() == pb.Metric_UTILIZATION && m.Capacity == nil:
		return fmt.Errorf("metric %q is a utilization without a capacity", m.GetName())
	case !finite(m.GetValue()) || m.GetValue() < 0:
		return fmt.Errorf("metric %q is %v", m.GetName(), m.GetValue())
	case m.Capacity != nil && (!finite(m.GetCapacity()) || m.GetValue() > m.GetCapacity()):
		return fmt.Errorf("metric %q is %v of %v", m.GetName(), m.GetValue(), m.GetCapacity())
	}
	return nil
}
