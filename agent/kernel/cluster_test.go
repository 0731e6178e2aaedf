package kernel

import (
	"bytes"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runner/peer"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	good := func() *agentpb.CreateKernelRequest {
		return &agentpb.CreateKernelRequest{Hostname: "sub1", Cluster: &agentpb.KernelCluster{
			Secret: bytes.Repeat([]byte{1}, peer.SecretSize), Members: []*agentpb.KernelMember{{Hostname: "main", Slots: 1}, {Hostname: "sub1", Slots: 8}},
		}}
	}
	for name, c := range map[string]struct {
		edit func(*agentpb.CreateKernelRequest)
		want string // in the error; "" = it is accepted
	}{
		"good":                {func(*agentpb.CreateKernelRequest) {}, ""},
		"one kernel":          {func(r *agentpb.CreateKernelRequest) { r.Cluster = nil }, ""},
		"no secret":           {func(r *agentpb.CreateKernelRequest) { r.Cluster.Secret = nil }, ""},
		"short secret":        {func(r *agentpb.CreateKernelRequest) { r.Cluster.Secret = []byte("x") }, "cluster.secret has 1 bytes, not 32"},
		"one member":          {func(r *agentpb.CreateKernelRequest) { r.Cluster.Members = r.Cluster.Members[1:] }, "cluster.members has 1 kernels"},
		"too many":            {func(r *agentpb.CreateKernelRequest) { r.Cluster.Members = make([]*agentpb.KernelMember, maxMembers+1) }, "not 2 to 1024"},
		"an option as a name": {func(r *agentpb.CreateKernelRequest) { r.Cluster.Members[0].Hostname = "a\n    ProxyCommand id" }, "cluster.members[0].hostname"},
		"a pattern":           {func(r *agentpb.CreateKernelRequest) { r.Cluster.Members[0].Hostname = "*" }, "cluster.members[0].hostname"},
		"no slots":            {func(r *agentpb.CreateKernelRequest) { r.Cluster.Members[1].Slots = 0 }, "cluster.members[1].slots 0"},
		"not a member":        {func(r *agentpb.CreateKernelRequest) { r.Hostname = "sub2" }, `lacks this kernel, "sub2"`},
	} {
		r := good()
		c.edit(r)
		err := checkCluster(r)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
