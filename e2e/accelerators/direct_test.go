package accelerators

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// A machine has GPUs of NVIDIA with open kernel modules, and cards of InfiniBand. Sessions get the
// variables for exactly their devices, unless they set others, and users can see whether GPUDirect
// works.
func TestCommunication(t *testing.T) {
	p := cluster.Start(t, cluster.Options{Machines: []string{"hgx-h100-8", "rdma-4"}})
	u := p.UserAs(t, "superadmin")
	berth := u.Shell()
	cluster.Eventually(t, "the plugins report all devices", func() bool {
		return load(t, "hgx-h100-8").complete(u) == nil && load(t, "rdma-4").complete(u) == nil
	})
	start := func(name string, env map[string]string, slots ...string) string {
		in := cluster.Interactive()
		in.Name, in.Environment = name, env
		in.Slots = cluster.Slots(append([]string{"cpu", "0.01", "mem", "32m"}, slots...)...)
		s := u.Run(in)
		u.Until(s.ID, "RUNNING")
		return s.ID
	}
	const noStorage = "Storage no: the module nvidia_fs is not loaded on the machine"
	for name, c := range map[string]struct {
		slots []string
		shown []string
	}{
		"near":    {[]string{"cuda.device", "1", "rdma.nic", "1"}, []string{"RDMA yes: each GPU has a card below the same PCIe root", noStorage, "NCCL_NET_GDR_LEVEL", "PXB"}},
		"no-card": {[]string{"cuda.device", "1"}, []string{"RDMA no: the session has no RDMA card; request rdma.nic or rdma.shared", noStorage}},
		"far":     {[]string{"cuda.device", "7", "rdma.nic", "1"}, []string{"RDMA no: GPU ", " and has no card there; card mlx5_"}},
	} {
		id := start(name, nil, c.slots...)
		text := berth.Must("session", "show", "--variables", name)
		for _, part := range c.shown {
			if !strings.Contains(text, part) {
				t.Errorf("%s: session show lacks %q:\n%s", name, part, text)
			}
		}
		u.End(id)
	}

	own := start("own", map[string]string{"NCCL_IB_HCA": "mine"}, "cuda.device", "2", "rdma.nic", "1")
	out, _ := u.Exec(own, "env | grep -E '^(NCCL|UCX)_' | sort")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 || lines[0] != "NCCL_IB_HCA=mine" || lines[2] != "NCCL_SOCKET_IFNAME==eth0" ||
		!strings.HasPrefix(lines[3], "UCX_NET_DEVICES=mlx5_") || lines[4] != "UCX_TLS=rc,ud,sm,self,cuda_copy,cuda_ipc" {
		t.Errorf("the session's environment is\n%s", out)
	}
	if text := berth.Must("session", "show", "--variables", "own"); strings.Contains(text, "=mlx5_") || !strings.Contains(text, "NCCL_IB_HCA=mine") {
		t.Errorf("session show omits variables of the session:\n%s", text)
	}
	u.End(own)
}
