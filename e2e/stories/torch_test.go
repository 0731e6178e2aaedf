package stories

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Four processes of PyTorch on two agents find each other through the environment variables of
// torchrun, and add numbers with gloo. The test needs the large image torch, and is skipped without
// it.
func TestTorchOverAgents(t *testing.T) {
	operator := operator(t)
	for _, node := range []string{"node-1", "node-2"} {
		if text := operator.Must("agent", "show", node); strings.Contains(text, "overlay: ") {
			t.Skipf("sessions over several agents: %s", text)
		}
	}
	platform.Offer(t, "torch")
	group := group(t, operator, "torch", []string{"node-1", "node-2"})
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	in := cluster.Batch(`cat >job.py <<'END'
import socket, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()}: sum {total.item():.0f}", flush=True)
dist.destroy_process_group()
END
exec torchrun job.py`)
	in.Image, in.ResourceGroup, in.Kernels = "torch:2.6", group, new(2)
	// Each kernel gets two accelerators, so it runs two processes. Four accelerators do not fit on
	// one agent.
	in.Slots = cluster.Slots("cpu", "0.5", "mem", "1g", "mock.shares", "2")
	in.Environment = map[string]string{"OMP_NUM_THREADS": "1"}
	s := u.Run(in)
	u.Until(s.ID, "TERMINATED")
	var all strings.Builder
	for _, k := range u.Show(s.ID).Kernels {
		log := client.LogStream{Kernel: k.ID}
		if err := log.CopyTo(t.Context(), u.Client, &all); err != nil {
			t.Errorf("log of %s: %v", k.Hostname, err)
		}
	}
	t.Log(all.String())
	mustContain(t, all.String(), "rank 0 of 4 on main: sum 10", "rank 1 of 4 on main: sum 10", "rank 2 of 4 on sub1: sum 10", "rank 3 of 4 on sub1: sum 10")
}
