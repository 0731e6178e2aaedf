package collective_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/collective"
)

func gpu(id, root string, node int, attributes ...string) collective.Device {
	return device("cuda", id, root, node, attributes...)
}

func nic(name, root string, node int, attributes ...string) collective.Device {
	return device("rdma", "0000:"+name, root, node,
		append([]string{"name", name, "active_ports", "1", "link_layer", "InfiniBand", "peer_memory", "nvidia_peermem"}, attributes...)...)
}

func device(plugin, id, root string, node int, attributes ...string) collective.Device {
	d := collective.Device{ID: id, Plugin: plugin, PCIERoot: root, Attributes: map[string]string{}}
	if node >= 0 {
		d.NUMANode = &node
	}
	for i := 0; i < len(attributes); i += 2 {
		d.Attributes[attributes[i]] = attributes[i+1]
	}
	return d
}

var pair = []string{"main", "sub1"}

// chosen returns the variables of a kernel with one of the prefixes, as NAME=value.
func chosen(k collective.Kernel, prefixes ...string) (list []string) {
	env := collective.Variables(k)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				list = append(list, name+"="+env[name])
			}
		}
	}
	return list
}

var libraries = []string{"NCCL_", "UCX_", "HCCL_", "GLOO_"}

func TestVariablesOfLibraries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		k    collective.Kernel
		want string
	}{
		"one kernel, one GPU": {collective.Kernel{Hosts: pair[:1], Devices: []collective.Device{gpu("a", "r", 0)}}, ""},
		"one kernel, two GPUs": {
			collective.Kernel{Hosts: pair[:1], Devices: []collective.Device{gpu("a", "r", 0), gpu("b", "r", 0)}},
			"GLOO_SOCKET_IFNAME=eth0 NCCL_SOCKET_IFNAME==eth0",
		},
		"two kernels without accelerators": {
			collective.Kernel{Hosts: pair},
			"GLOO_SOCKET_IFNAME=eth0 UCX_NET_DEVICES=eth0 UCX_TLS=tcp,sm,self",
		},
		"two kernels with Gaudi": {
			collective.Kernel{Hosts: pair, Devices: []collective.Device{device("gaudi", "a", "r", 0)}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_SOCKET_IFNAME=eth0 UCX_NET_DEVICES=eth0 UCX_TLS=tcp,sm,self",
		},
		"Gaudi and cards": {
			collective.Kernel{Hosts: pair, Devices: []collective.Device{device("gaudi", "a", "r", 0), nic("mlx5_0", "r", 0)}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_OVER_OFI=1 HCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA==mlx5_0:1 NCCL_SOCKET_IFNAME==eth0 UCX_NET_DEVICES=mlx5_0:1 UCX_TLS=rc,ud,sm,self",
		},
		"a card alone": {
			collective.Kernel{Hosts: pair[:1], Devices: []collective.Device{nic("mlx5_2", "r", 0, "active_ports", "1,2")}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA==mlx5_2:1,mlx5_2:2 NCCL_SOCKET_IFNAME==eth0 UCX_NET_DEVICES=mlx5_2:1,mlx5_2:2 UCX_TLS=rc,ud,sm,self",
		},
		"GPUs and near cards": {
			collective.Kernel{Hosts: pair, Devices: []collective.Device{gpu("a", "r", 0), nic("mlx5_1", "q", 0), nic("mlx5_0", "r", 0)}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 NCCL_NET_GDR_LEVEL=PXB NCCL_SOCKET_IFNAME==eth0 UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 UCX_TLS=rc,ud,sm,self,cuda_copy,cuda_ipc",
		},
		"AMD and a card of the same node": {
			collective.Kernel{Hosts: pair, Devices: []collective.Device{device("rocm", "a", "r", 1), nic("mlx5_0", "q", 1, "peer_memory", "amdgpu")}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA==mlx5_0:1 NCCL_NET_GDR_LEVEL=PHB NCCL_SOCKET_IFNAME==eth0 UCX_NET_DEVICES=mlx5_0:1 UCX_TLS=rc,ud,sm,self,rocm_copy,rocm_ipc",
		},
		"RoCE": {
			collective.Kernel{Hosts: pair, Devices: []collective.Device{gpu("a", "r", 0), nic("bnxt_0", "r", 0, "link_layer", "Ethernet", "gid_index", "3")}},
			"GLOO_SOCKET_IFNAME=eth0 HCCL_SOCKET_IFNAME=eth0 NCCL_IB_GID_INDEX=3 NCCL_IB_HCA==bnxt_0:1 NCCL_SOCKET_IFNAME==eth0 UCX_IB_GID_INDEX=3 UCX_NET_DEVICES=bnxt_0:1 UCX_TLS=rc,ud,sm,self,cuda_copy,cuda_ipc",
		},
	} {
		if got := strings.Join(chosen(c.k, libraries...), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestVariablesOfLaunchers(t *testing.T) {
	t.Parallel()
	k := collective.Kernel{Hosts: []string{"main", "sub1", "sub2"}, Index: 2, Devices: []collective.Device{gpu("a", "r", 0), gpu("b", "r", 0), nic("mlx5_0", "r", 0)}}
	want := []string{
		"BERTH_CLUSTER_HOST=sub2", "BERTH_CLUSTER_HOSTS=main,sub1,sub2", "BERTH_CLUSTER_IDX=2", "BERTH_CLUSTER_ROLE=sub", "BERTH_CLUSTER_SIZE=3",
		"MASTER_ADDR=main", "MASTER_PORT=29500",
		"PET_MASTER_ADDR=main", "PET_MASTER_PORT=29500", "PET_NNODES=3", "PET_NODE_RANK=2", "PET_NPROC_PER_NODE=2",
	}
	if got := chosen(k, "BERTH_", "MASTER_", "PET_"); !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if n := (collective.Kernel{Hosts: pair, MilliCPU: 2500}).Slots(); n != 2 {
		t.Errorf("2.5 CPUs are %d slots", n)
	}
	if n := (collective.Kernel{Hosts: pair, MilliCPU: 100}).Slots(); n != 1 {
		t.Errorf("0.1 CPUs are %d slots", n)
	}
	// A session of one kernel is no cluster for a launcher.
	if got := chosen(collective.Kernel{Hosts: pair[:1]}, "MASTER_", "PET_", "OMPI_", "PRTE_", "HYDRA_", "HOROVOD_"); len(got) > 0 {
		t.Errorf("one kernel has %q", got)
	}
}

func TestGPUDirect(t *testing.T) {
	t.Parallel()
	const storageOff = "STORAGE no: the module nvidia_fs is not loaded on the machine"
	for name, c := range map[string]struct {
		devices []collective.Device
		want    []string
	}{
		"no GPU":  {[]collective.Device{nic("mlx5_0", "r", 0)}, nil},
		"no card": {[]collective.Device{gpu("a", "r", 0)}, []string{"RDMA no: the session has no RDMA card; request rdma.nic or rdma.shared", storageOff}},
		"same root": {
			[]collective.Device{gpu("a", "r", 0), nic("mlx5_0", "r", 0)},
			[]string{"RDMA yes: each GPU has a card below the same PCIe root", storageOff},
		},
		"same node, storage": {
			[]collective.Device{gpu("a", "r", 0, "gpudirect_storage", "true"), nic("mlx5_0", "q", 0)},
			[]string{"RDMA yes: each GPU has a card on the same NUMA node", "STORAGE yes: the module nvidia_fs is loaded; the file system of a folder must support it too"},
		},
		"other node": {
			[]collective.Device{gpu("a", "r", 0), gpu("b", "s", 1), nic("mlx5_0", "r", 0)},
			[]string{"RDMA no: GPU b is on NUMA node 1 and has no card there; card mlx5_0 is on node 0", storageOff},
		},
		"unknown places": {
			[]collective.Device{gpu("a", "", -1), nic("mlx5_0", "", -1)},
			[]string{"RDMA no: GPU a and card mlx5_0 have no common PCIe root, and the machine does not report their NUMA nodes", storageOff},
		},
		"no module": {
			[]collective.Device{gpu("a", "r", 0, "dma_buf", "false"), nic("mlx5_0", "r", 0, "peer_memory", "")},
			[]string{"RDMA no: the machine has neither the module nvidia_peermem nor NVIDIA's open kernel modules, which have dma-buf", storageOff},
		},
		"dma-buf": {
			[]collective.Device{gpu("a", "r", 0, "dma_buf", "true"), nic("mlx5_0", "r", 0, "peer_memory", "")},
			[]string{"RDMA yes: each GPU has a card below the same PCIe root", storageOff},
		},
		"RoCE": {
			[]collective.Device{gpu("a", "r", 0), nic("mlx5_0", "r", 0, "link_layer", "Ethernet")},
			[]string{"RDMA no: card mlx5_0 is a RoCE card, whose addresses belong to the machine's network and not to the container's", storageOff},
		},
		"AMD without its module": {
			[]collective.Device{device("rocm", "a", "r", 0), nic("mlx5_0", "r", 0)},
			[]string{"RDMA no: the module amdgpu is not loaded on the machine"},
		},
	} {
		var got []string
		for _, s := range collective.Direct(collective.Kernel{Hosts: pair, Devices: c.devices}) {
			answer := " no: "
			if s.Available {
				answer = " yes: "
			}
			got = append(got, string(s.Feature)+answer+s.Reason)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s", name, cmp.Diff(c.want, got))
		}
	}
}
