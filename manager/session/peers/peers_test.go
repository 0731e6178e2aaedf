package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/collective"
	"github.com/berthhq/berth/internal/resource"
)

// gpuAndCard returns a session of two kernels with a GPU and a network card each.
func gpuAndCard() *ent.Session {
	node := 0
	sess := &ent.Session{Environment: map[string]string{"NCCL_IB_HCA": ""}}
	for i, host := range []string{"main", "sub1"} {
		k := &ent.Kernel{Index: i, Hostname: host}
		for _, a := range []struct {
			slot   string
			amount int64
			device ent.Device
		}{
			{resource.CPU, 3000, ent.Device{DeviceID: "cpu"}},
			{"cuda.device", 1000, ent.Device{DeviceID: "cuda:GPU-1", Plugin: "cuda", NumaNode: &node, Attributes: map[string]string{"dma_buf": "true"}}},
			{"rdma.nic", 1000, ent.Device{DeviceID: "rdma:0000:19:00.0", Plugin: "rdma", NumaNode: &node, Attributes: map[string]string{"name": "mlx5_0", "active_ports": "1"}}},
		} {
			k.Edges.Allocations = append(k.Edges.Allocations, &ent.Allocation{Slot: a.slot, Amount: a.amount, Edges: ent.AllocationEdges{Device: &a.device}})
		}
		freed := time.Now() // freed by an earlier attempt
		k.Edges.Allocations = append(k.Edges.Allocations, &ent.Allocation{
			Slot: "cuda.device", Amount: 1000, FreedAt: &freed, Edges: ent.AllocationEdges{Device: &ent.Device{DeviceID: "cuda:GPU-2", Plugin: "cuda"}},
		})
		sess.Edges.Kernels = append(sess.Edges.Kernels, k)
	}
	return sess
}

func TestOwnEnvironmentReplacesVariables(t *testing.T) {
	t.Parallel()
	sess := gpuAndCard()
	k := sess.Edges.Kernels[1]
	env := Environment(sess, k, map[string]string{"NCCL_IB_HCA": "mine", "OTHER": "x"})
	got := fmt.Sprint(env["NCCL_IB_HCA"], " ", env["OTHER"], " ", env["BERTH_CLUSTER_HOST"], " ", env["PET_NPROC_PER_NODE"], " ", env["NCCL_NET_GDR_LEVEL"])
	if want := "mine x sub1 1 PHB"; got != want {
		t.Errorf("the environment has %q, want %q", got, want)
	}
	// Variables that the session replaces are not shown as variables of the platform.
	shown := Variables(sess, k)
	if _, there := shown["NCCL_IB_HCA"]; there || shown["UCX_NET_DEVICES"] != "mlx5_0:1" {
		t.Errorf("shown are %v", shown)
	}
	if s := collective.Direct(Collective(sess, k)); len(s) != 2 || !s[0].Available || s[1].Available {
		t.Errorf("GPUDirect is %v", s)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	sess := gpuAndCard()
	c := Cluster(sess, []byte("secret"))
	got := string(c.Secret)
	for _, m := range c.Members {
		got += fmt.Sprint(" ", m.Hostname, " ", m.Slots)
	}
	if want := "secret main 1 sub1 1"; got != want {
		t.Errorf("the kernels are told %q, want %q", got, want)
	}
	sess.Edges.Kernels = sess.Edges.Kernels[:1]
	if c := Cluster(sess, []byte("secret")); c != nil {
		t.Errorf("a session of one kernel has %v", c)
	}
}
