package device

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	ocispecs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Apply adds the plugins' edits to a container's spec. It returns an error that names the first
// edit that the plugin is not allowed to make.
func (m *Manager) Apply(spec *ocispecs.Spec, prepared Prepared) error {
	for _, key := range slices.Sorted(maps.Keys(prepared.Edits)) {
		p := m.plugin(key)
		if p == nil {
			return fmt.Errorf("plugin %s is not configured on this node: %w", key, errdefs.ErrFailedPrecondition)
		}
		if err := apply(spec, prepared.Edits[key], p.cfg.Allow, p.origins(prepared.ID)); err != nil {
			return fmt.Errorf("plugin %s: %w", key, err)
		}
	}
	return nil
}

func apply(spec *ocispecs.Spec, e *acceleratorpb.ContainerEdits, allow Allow, from origins) error {
	if e == nil {
		return nil
	}
	if err := permitted(e, allow); err != nil {
		return err
	}
	if err := from.permit(e); err != nil {
		return err
	}
	vocabulary, err := translate(e)
	if err != nil {
		return err
	}
	edits := cdi.ContainerEdits{ContainerEdits: vocabulary}
	if err := edits.Validate(); err != nil {
		return fmt.Errorf("edits: %w: %w", err, errdefs.ErrFailedPrecondition)
	}
	if err := edits.Apply(spec); err != nil {
		return fmt.Errorf("edits: %w: %w", err, errdefs.ErrFailedPrecondition)
	}
	prepend(spec, "LD_LIBRARY_PATH", e.LibraryDirs)
	prepend(spec, "LD_PRELOAD", e.PreloadLibs)
	privileges(spec, e)
	return nil
}

// permitted checks edits that weaken the isolation of a container against the operator's list.
func permitted(e *acceleratorpb.ContainerEdits, allow Allow) error {
	refuse := func(what string) error {
		return fmt.Errorf("%s is not in the plugin's allow-list: %w", what, errdefs.ErrPermissionDenied)
	}
	if e.HostIpc && !allow.HostIPC {
		return refuse("host IPC")
	}
	for what, lists := range map[string][2][]string{
		"capability":  {e.Capabilities, allow.Capabilities},
		"system call": {e.Syscalls, allow.Syscalls},
		"sysctl":      {slices.Sorted(maps.Keys(e.Sysctls)), allow.Sysctls},
		"network":     {e.Networks, allow.Networks},
	} {
		for _, name := range lists[0] {
			if !slices.Contains(lists[1], name) {
				return refuse(what + " " + name)
			}
		}
	}
	if len(e.Networks) > 0 {
		return fmt.Errorf("extra networks: %w", errdefs.ErrNotImplemented)
	}
	return nil
}

// translate converts the edits that CDI can express.
func translate(e *acceleratorpb.ContainerEdits) (*cdispecs.ContainerEdits, error) {
	out := &cdispecs.ContainerEdits{AdditionalGIDs: e.AdditionalGids}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		out.Env = append(out.Env, name+"="+e.Env[name])
	}
	for _, n := range e.DeviceNodes {
		host := n.HostPath
		if host == "" {
			host = n.Path
		}
		if missing(host) && n.Type == acceleratorpb.DeviceNode_UNSPECIFIED {
			if n.Optional {
				continue
			}
			return nil, fmt.Errorf("device node %s is not on this host: %w", host, errdefs.ErrFailedPrecondition)
		}
		node := &cdispecs.DeviceNode{Path: n.Path, HostPath: host, Permissions: n.Permissions}
		if node.Permissions == "" {
			node.Permissions = "rw"
		}
		if n.Type != acceleratorpb.DeviceNode_UNSPECIFIED {
			node.Type = map[acceleratorpb.DeviceNode_Type]string{acceleratorpb.DeviceNode_CHAR: "c", acceleratorpb.DeviceNode_BLOCK: "b"}[n.Type]
			node.Major, node.Minor = int64(n.Major), int64(n.Minor)
		}
		out.DeviceNodes = append(out.DeviceNodes, node)
	}
	for _, mount := range e.Mounts {
		if missing(mount.Source) {
			if mount.Optional {
				continue
			}
			return nil, fmt.Errorf("%s is not on this host: %w", mount.Source, errdefs.ErrFailedPrecondition)
		}
		options := []string{"bind", "rprivate", "nosuid"}
		if mount.Recursive {
			options[0] = "rbind"
		}
		if !mount.Writable {
			options = append(options, "ro")
		}
		out.Mounts = append(out.Mounts, &cdispecs.Mount{HostPath: mount.Source, ContainerPath: mount.Target, Type: "bind", Options: options})
	}
	return out, nil
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// prepend puts entries before the present value of a colon-separated variable.
func prepend(spec *ocispecs.Spec, name string, entries []string) {
	if len(entries) == 0 {
		return
	}
	value := strings.Join(entries, ":")
	for i, kv := range spec.Process.Env {
		if old, ok := strings.CutPrefix(kv, name+"="); ok {
			if old != "" {
				value += ":" + old
			}
			spec.Process.Env[i] = name + "=" + value
			return
		}
	}
	spec.Process.Env = append(spec.Process.Env, name+"="+value)
}

// privileges adds the edits that permitted has checked.
func privileges(spec *ocispecs.Spec, e *acceleratorpb.ContainerEdits) {
	for _, l := range e.Rlimits {
		spec.Process.Rlimits = append(spec.Process.Rlimits, limit(l, mayRaiseLimits()))
	}
	if caps := spec.Process.Capabilities; caps != nil {
		caps.Bounding = append(caps.Bounding, e.Capabilities...)
		caps.Permitted = append(caps.Permitted, e.Capabilities...)
		caps.Effective = append(caps.Effective, e.Capabilities...)
	}
	if len(e.Syscalls) > 0 && spec.Linux.Seccomp != nil {
		spec.Linux.Seccomp.Syscalls = append(spec.Linux.Seccomp.Syscalls, ocispecs.LinuxSyscall{Names: e.Syscalls, Action: ocispecs.ActAllow})
	}
	if e.HostIpc {
		spec.Linux.Namespaces = slices.DeleteFunc(spec.Linux.Namespaces, func(n ocispecs.LinuxNamespace) bool { return n.Type == ocispecs.IPCNamespace })
	}
	for name, value := range e.Sysctls {
		if spec.Linux.Sysctl == nil {
			spec.Linux.Sysctl = map[string]string{}
		}
		spec.Linux.Sysctl[name] = value
	}
	for name, value := range e.Annotations {
		if spec.Annotations == nil {
			spec.Annotations = map[string]string{}
		}
		spec.Annotations[name] = value
	}
}

// origins are the host directories that a plugin's edits may refer to: its roots, its own
// directories, and the directories that the operator adds. They are no protection against a
// malicious plugin, which has the agent's permissions on the host, but they keep a bug or a faulty
// device from exposing host files to containers.
type origins struct {
	nodes    []string // device files
	readOnly []string
	writable []string
}

// systemDirs are the directories in which drivers are installed on a host that is its own driver
// root. Others, such as /etc and /run, contain secrets and sockets.
var systemDirs = []string{"/usr", "/lib", "/lib32", "/lib64", "/opt"}

// origins returns the allowed directories for the edits of one allocation.
func (p *plugin) origins(id string) origins {
	r := p.cfg.Roots
	own := []string{p.m.work(p.Key(), id), p.m.state(p.Key())}
	dir := filepath.Dir(p.cfg.Path)
	o := origins{
		nodes:    []string{or(r.GetDev(), "/dev")},
		readOnly: append([]string{or(r.GetSys(), "/sys"), dir, filepath.Join(dir, "../lib")}, r.GetPath()...),
		writable: append(own, or(r.GetDev(), "/dev")), // hugepages are mounted below it
	}
	if driver := or(r.GetDriver(), "/"); driver != "/" {
		o.readOnly = append(o.readOnly, driver)
	} else {
		o.readOnly = append(o.readOnly, systemDirs...)
	}
	o.writable = append(o.writable, p.cfg.Allow.Mounts...)
	return o
}

func or(path, usual string) string {
	if path == "" {
		return usual
	}
	return filepath.Clean(path)
}

// permit checks that edits refer only to allowed directories. Optional paths that do not exist are
// skipped.
func (o origins) permit(e *acceleratorpb.ContainerEdits) error {
	for _, n := range e.DeviceNodes {
		host := n.HostPath
		if host == "" {
			host = n.Path
		}
		if !within(host, o.nodes) && !(n.Optional && missing(host)) {
			return fmt.Errorf("device node %s: not below %s: %w", host, strings.Join(o.nodes, ", "), errdefs.ErrPermissionDenied)
		}
	}
	for _, m := range e.Mounts {
		from := o.writable
		if !m.Writable {
			from = append(from[:len(from):len(from)], o.readOnly...)
		}
		if !within(m.Source, from) && !(m.Optional && missing(m.Source)) {
			how := "read-only"
			if m.Writable {
				how = "writable"
			}
			return fmt.Errorf("%s mount of %s: not below the plugin's roots, and not in its allow-list: %w", how, m.Source, errdefs.ErrPermissionDenied)
		}
	}
	return nil
}

// within reports whether a path is below one of the directories after resolving symbolic links. A
// path that does not exist is compared by its name.
func within(path string, dirs []string) bool {
	real := resolve(path)
	for _, d := range dirs {
		if rest, below := strings.CutPrefix(real, strings.TrimSuffix(resolve(d), "/")+"/"); below && rest != "" {
			return true
		}
	}
	return false
}

// resolve follows symbolic links as far as the path exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || !os.IsNotExist(err) {
		return real // "" is not within any directory
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// resources maps the names of rlimits to their numbers.
var resources = map[string]int{"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "stack": unix.RLIMIT_STACK, "nproc": unix.RLIMIT_NPROC}

// limit converts a limit. An agent that cannot raise limits, such as one in a container, lowers it
// to its own: otherwise the container would not start.
func limit(l *acceleratorpb.Rlimit, mayRaise bool) ocispecs.POSIXRlimit {
	out := ocispecs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(l.Name), Soft: l.Soft, Hard: l.Hard}
	resource, known := resources[strings.ToLower(l.Name)]
	var own unix.Rlimit
	if mayRaise || !known || unix.Getrlimit(resource, &own) != nil {
		return out
	}
	out.Hard = min(out.Hard, own.Max)
	out.Soft = min(out.Soft, out.Hard)
	return out
}

// mayRaiseLimits reports whether this process has CAP_SYS_RESOURCE.
func mayRaiseLimits() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
