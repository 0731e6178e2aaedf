package device

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	ocispecs "github.com/opencontainers/runtime-spec/specs-go"
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
