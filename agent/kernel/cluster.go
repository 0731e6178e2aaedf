package kernel

import (
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runner/peer"
)

// cluster returns the files about the kernels of the session, nil for a session with one kernel.
// The record of a running kernel lacks the secret, and its container has the files already.
func cluster(r *agentpb.CreateKernelRequest) *peer.Files {
	if r.Cluster == nil {
		return nil
	}
	f := &peer.Files{Secret: r.Cluster.Secret}
	for _, m := range r.Cluster.Members {
		f.Members = append(f.Members, peer.Member{Hostname: m.Hostname, Slots: int(m.Slots)})
	}
	return f
}

// maxMembers limits the kernels of a session, above what managers allow.
const maxMembers = 1024

// checkCluster returns InvalidArgument if the list of the session's kernels is malformed: its names are
// written into configuration files.
func checkCluster(r *agentpb.CreateKernelRequest) error {
	c := r.Cluster
	if c == nil {
		return nil
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("cluster."+format+": %w", append(args, errdefs.ErrInvalidArgument)...)
	}
	if n := len(c.Secret); n != 0 && n != peer.SecretSize {
		return bad("secret has %d bytes, not %d", n, peer.SecretSize)
	}
	if n := len(c.Members); n < 2 || n > maxMembers {
		return bad("members has %d kernels, not 2 to %d", n, maxMembers)
	}
	own := false
	for i, m := range c.Members {
		if !hostnameForm.MatchString(m.Hostname) {
			return bad("members[%d].hostname %.80q is malformed", i, m.Hostname)
		}
		if m.Slots < 1 || m.Slots > 1<<16 {
			return bad("members[%d].slots %d is not between 1 and %d", i, m.Slots, 1<<16)
		}
		own = own || m.Hostname == r.Hostname
	}
	if !own {
		return bad("members lacks this kernel, %.80q", r.Hostname)
	}
	return nil
}
