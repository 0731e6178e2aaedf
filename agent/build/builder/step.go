package builder

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/executor/resources/types"
	"github.com/moby/buildkit/util/network"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/runtime/sandbox"
	"github.com/berthhq/berth/agent/trust"
)

// sandboxes is BuildKit's provider of networks. BuildKit lets the network of a step complete the step's
// spec, so this is where the rules of the sandbox are applied to every step.
type sandboxes struct {
	request build.Request
	alone   bool // RUN --network=none
}

func (s *sandboxes) New(context.Context, string, network.NamespaceOptions) (network.Namespace, error) {
	return (*step)(s), nil
}

func (s *sandboxes) Close() error { return nil }

// step is the network of one step.
type step sandboxes

func (s *step) Close() error { return nil }

func (s *step) Sample() (*types.NetworkSample, error) { return nil, nil }

// Set restricts a step as a container of a session is restricted.
func (s *step) Set(spec *specs.Spec) error {
	sandbox.Restrict(spec)
	sandbox.Filter(spec)
	sandbox.LimitIoctls(spec.Linux.Seccomp)
	// The limits of the sandbox's cgroup apply to everything below it. In version 2 of cgroups, one
	// below a cgroup with processes cannot have limits of its own.
	spec.Linux.Resources = &specs.LinuxResources{Devices: spec.Linux.Resources.Devices}
	namespaces := slices.DeleteFunc(spec.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.NetworkNamespace })
	own := specs.LinuxNamespace{Type: specs.NetworkNamespace}
	if !s.alone {
		own.Path = s.request.NetNS
	}
	spec.Linux.Namespaces = append(namespaces, own)
	for i, m := range spec.Mounts {
		if m.Destination == "/etc/resolv.conf" {
			spec.Mounts[i].Source = s.resolvConf()
		}
	}
	trust.Add(spec, s.request.CABundle)
	const epoch = "SOURCE_DATE_EPOCH"
	if !slices.ContainsFunc(spec.Process.Env, func(v string) bool { return strings.HasPrefix(v, epoch+"=") }) {
		// Python records the time of a source file in its compiled form unless this variable is set, and
		// the time changes when the image is exported.
		spec.Process.Env = append(spec.Process.Env, epoch+"="+strconv.FormatInt(s.request.Epoch, 10))
	}
	return nil
}

func (s *step) resolvConf() string { return filepath.Join(s.request.Root, "resolv.conf") }

// writeResolvConf writes the file that steps see.
func writeResolvConf(r build.Request) error {
	return os.WriteFile((*step)(&sandboxes{request: r}).resolvConf(), []byte(r.ResolvConf), 0o644)
}
