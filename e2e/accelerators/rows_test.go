package accelerators

import (
	"fmt"
	"strings"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/internal/fixture"
)

// row is what a session with one device of a machine must see.
type row struct {
	plugin string // key of the plugin, which is part of the names of devices
	slot   string
	// ids are the devices with the slot. They are nil if nothing inside a container distinguishes
	// the devices.
	ids  func(m *fixture.Machine) []string
	sees func(i int) view // view with the device of the i-th ID
}

// view is what a container has of its device. It must have no other device nodes and variables.
type view struct {
	nodes    string            // below /dev
	env      string            // NAME=VALUE
	files    map[string]string // read-only files, with a part of their content
	writable string            // a directory
}

func are(ids ...string) func(*fixture.Machine) []string {
	return func(*fixture.Machine) []string { return ids }
}

// buses returns devices that are identified by their bus addresses.
func buses(names ...string) func(*fixture.Machine) []string {
	for i, n := range names {
		names[i] = "0000:" + n
	}
	return are(names...)
}

// from returns n devices by the names in the machine's files.
func from(n int, name func(m *fixture.Machine, i int) string) func(*fixture.Machine) []string {
	return func(m *fixture.Machine) (ids []string) {
		for i := range n {
			ids = append(ids, name(m, i))
		}
		return ids
	}
}

// said returns the content of a file of the machine without white space.
func said(m *fixture.Machine, format string, args ...any) string {
	return strings.TrimSpace(m.Files[fmt.Sprintf(format, args...)])
}

// always returns a view that does not depend on the device.
func always(v view) func(int) view { return func(int) view { return v } }

// nodes returns a view with device nodes only. The number of the i-th device is i + first.
func nodes(format string, first int) func(int) view {
	return func(i int) view { return view{nodes: fmt.Sprintf(format, i+first)} }
}

// npus returns cards of Rebellions, whose devices have other names inside a container.
func npus(n int) func(int) view {
	v := view{nodes: "rsd0"}
	for i := range n {
		v.nodes += fmt.Sprintf(" rbln%d", i)
	}
	return always(v)
}

// gpus returns the GPUs of AMD with the render node of each.
func gpus(step int) func(int) view {
	return func(i int) view {
		return view{nodes: fmt.Sprintf("kfd dri/renderD%d", 128+step*i), env: "ROCR_VISIBLE_DEVICES=0 HIP_VISIBLE_DEVICES=0"}
	}
}

var rows = map[string]row{
	"atom-4": {plugin: "rebellions", slot: "atom.device", sees: func(int) view {
		v := npus(1)(0)
		v.env = "LD_LIBRARY_PATH=/usr/local/rebellions/lib"
		v.files = map[string]string{"/usr/local/rebellions/lib/librbln-ml.so.1": "library", "/usr/local/bin/rbln-smi": "the program"}
		return v
	}},
	"atom-max-2x": {plugin: "rebellions", slot: "atom-max.device", sees: npus(4)},
	"gaudi3-8": {plugin: "gaudi", slot: "gaudi3.device",
		ids: buses("19:00.0", "1a:00.0", "33:00.0", "34:00.0", "9a:00.0", "9b:00.0", "b3:00.0", "b4:00.0"),
		sees: func(i int) view {
			return view{
				nodes: fmt.Sprintf("accel/accel%[1]d accel/accel_controlD%[1]d infiniband/uverbs%[2]d", 7-i, 4+i),
				env:   fmt.Sprintf("HABANA_VISIBLE_DEVICES=%d HABANA_VISIBLE_MODULES=%d", 7-i, []int{2, 3, 0, 1, 6, 7, 4, 5}[i]),
				files: map[string]string{
					"/etc/habanalabs/macAddrInfo.json": fmt.Sprintf("b0:fd:0b:d5:%02x:64", i),
					"/etc/habanalabs/gaudinet.json":    "10.210.8.121",
				},
			}
		}},
	"groqnode-8": {plugin: "groq", slot: "groq.device",
		ids: buses("03:00.0", "0b:00.0", "23:00.0", "2a:00.0", "83:00.0", "8c:00.0", "a3:00.0", "ab:00.0"),
		sees: func(i int) view {
			return view{
				nodes: fmt.Sprintf("groqA%d.pci", 8+i),
				files: map[string]string{"/opt/groq/runtime/site-packages/version": "0.11.0"},
			}
		}},
	"hgx-h100-8": {plugin: "cuda", slot: "cuda.device",
		ids: from(7, func(m *fixture.Machine, i int) string { return said(m, "root/nvml/gpu%d/uuid", i) }),
		sees: func(i int) view {
			return view{
				nodes: fmt.Sprintf("nvidia%d nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset", (i+4)%8),
				env:   "NVIDIA_VISIBLE_DEVICES={id} NVIDIA_DRIVER_CAPABILITIES=compute,utility LD_LIBRARY_PATH=/usr/local/nvidia/lib64",
				files: map[string]string{"/usr/local/nvidia/lib64/libcuda.so.1": "libcuda of the driver"},
			}
		}},
	"ipu-pod4": {plugin: "ipu", slot: "ipu.device",
		ids: are("0020.0002.8203321/0", "0020.0002.8203321/1", "0020.0002.8203321/2", "0020.0002.8203321/3", "0063.0063.822391/0"),
		sees: func(i int) view {
			if i == 4 {
				return view{nodes: "ipu4 ipu4_ex"}
			}
			return view{
				nodes: "infiniband/rdma_cm infiniband/uverbs0", env: "IPUOF_CONFIG_PATH=/etc/ipuof.conf.d/berth.conf",
				files: map[string]string{"/etc/ipuof.conf.d/berth.conf": fmt.Sprintf(`"device_id": %d`, i)},
			}
		}},
	"lpu-2": {plugin: "hyperaccel-lpu", slot: "hyperaccel-lpu.device", ids: are("XFL1A2B3C4D0", "0000:3b:00.0"), sees: func(i int) view {
		return view{
			nodes: fmt.Sprintf("xfpga/xvc_pri.m%d.0 dri/renderD%d", []int{2560, 15104}[i], 128+i),
			files: map[string]string{"/opt/hyperdex/version": "1.0.0"},
		}
	}},
	"max1100-4": {plugin: "xpu", slot: "xpu.device", ids: buses("29:00.0", "3a:00.0", "9a:00.0", "b1:00.0"), sees: func(i int) view {
		return view{nodes: fmt.Sprintf("dri/card%d dri/renderD%d", 1+i, 128+i)}
	}},
	"mi250x-4": {plugin: "rocm", slot: "rocm.device", sees: gpus(1),
		ids: from(8, func(_ *fixture.Machine, i int) string { return fmt.Sprintf("%016x", 3602879701896396800+i*104729) })},
	"mi300x-8-spx": {plugin: "rocm", slot: "rocm.device", sees: gpus(8),
		ids: from(8, func(_ *fixture.Machine, i int) string { return fmt.Sprintf("%016x", 5764607523034234880+i*7919) })},
	"mi300x-cpx": {plugin: "rocm", slot: "rocm.device:cpx-part", sees: gpus(1),
		ids: from(64, func(_ *fixture.Machine, i int) string {
			return fmt.Sprintf("%016x/%d", 5764607523034234880+i/8*7919, i%8)
		})},
	"mock-4": {plugin: "mock", slot: "mock.device", ids: are("gpu-0", "gpu-1", "gpu-2", "gpu-3"), sees: func(i int) view {
		return view{
			nodes: "mock0", env: fmt.Sprintf("MOCK_VISIBLE_DEVICES=gpu-%[1]d MOCK_SHARES=gpu-%[1]d:1", i),
			files: map[string]string{mount.Resources: fmt.Sprintf("MOCK_SHARES=gpu-%d:1\n", i)},
		}
	}},
	"n150-2": {plugin: "tenstorrent", slot: "tt-n150.device", ids: are("0100018511723000", "0100018511723001"), sees: nodes("tenstorrent/%d", 9)},
	"n300-4": {plugin: "tenstorrent", slot: "tt-n300.device",
		ids: are("87160100f3fb5a10", "87160100f3fb5a11", "87160100f3fb5a12", "87160100f3fb5a13"),
		sees: func(i int) view {
			return view{nodes: fmt.Sprintf("tenstorrent/%d", i), writable: "/dev/hugepages-1G"}
		}},
	"rdma-4": {plugin: "rdma", slot: "rdma.nic", ids: buses("19:00.0", "19:00.1", "98:00.0"), sees: func(i int) view {
		return view{
			nodes: fmt.Sprintf("infiniband/uverbs%d infiniband/rdma_cm", i),
			env: fmt.Sprintf("NCCL_IB_HCA==mlx5_%[1]d:1 UCX_NET_DEVICES=mlx5_%[1]d:1 UCX_TLS=rc,ud,sm,self "+
				"NCCL_SOCKET_IFNAME==eth0 HCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0", i),
		}
	}},
	"rngd-8": {plugin: "furiosa", slot: "rngd.device:2pe",
		ids: from(32, func(m *fixture.Machine, i int) string {
			return fmt.Sprintf("%s/pe%d-%d", said(m, "sys/devices/virtual/rngd_mgmt/rngd!npu%dmgmt/device_uuid", i/4), i%4*2, i%4*2+1)
		}),
		sees: func(i int) view {
			card := fmt.Sprintf("rngd/npu%d", i/4)
			v := view{nodes: fmt.Sprintf("%[1]smgmt %[1]sdmar %[1]spe%[2]d %[1]spe%[3]d %[1]spe%[2]d-%[3]d", card, i%4*2, i%4*2+1)}
			for channel := range 8 {
				v.nodes += fmt.Sprintf(" %[1]sch%[2]d %[1]sch%[2]dr", card, channel)
			}
			return v
		}},
	"sapeon-1": {plugin: "sapeon", slot: "sapeon-x330.device", ids: buses("11:00.0"), sees: nodes("sapeon%d", 0)},
	"sn30-8": {plugin: "sn-rdu", slot: "sn-rdu.tile",
		ids: from(64, func(_ *fixture.Machine, i int) string {
			return fmt.Sprintf("205057B469B358%d%d/TILE_%d", i/16, i/8%2, i%8)
		}),
		sees: func(i int) view {
			return view{
				nodes: fmt.Sprintf("rdu%d", i/8),
				env:   fmt.Sprintf("SN_RDU_DEVICES=/XRDU_%d/RDU_%d/TILE_%d", i/16, i/8%2, i%8),
			}
		}},
	"sn40l-16": {plugin: "sn-rdu", slot: "sn-rdu.device",
		ids: from(15, func(_ *fixture.Machine, i int) string {
			if i/2 == 5 { // this device reports no serial number
				return fmt.Sprintf("XRDU_5/RDU_%d", i%2)
			}
			return fmt.Sprintf("40C0FFEE%02d", i)
		}),
		sees: func(i int) view {
			return view{
				nodes: fmt.Sprintf("sambanova/control sambanova/xrdu%d_rdu%d", i/2, i%2),
				env:   fmt.Sprintf("SN_RDU_DEVICES=/XRDU_%d/RDU_%d", i/2, i%2),
			}
		}},
	"v5e-4": {plugin: "tpu", slot: "tpu.device", ids: buses("00:04.0", "00:05.0", "00:06.0", "00:07.0"), sees: func(i int) view {
		return view{
			nodes: fmt.Sprintf("vfio/vfio vfio/%d", i),
			env: fmt.Sprintf("TPU_VISIBLE_CHIPS=%d TPU_SKIP_MDS_QUERY=true TPU_RUNTIME_METRICS_PORTS=8431 TPU_WORKER_ID=0 TPU_WORKER_HOSTNAMES=localhost "+
				"TPU_TOPOLOGY=1x1 TPU_ACCELERATOR_TYPE=v5litepod-1 TPU_CHIPS_PER_HOST_BOUNDS=1,1,1 TPU_HOST_BOUNDS=1,1,1", i),
			writable: "/tmp/tpu_logs",
		}
	}},
	"warboy-2": {plugin: "furiosa", slot: "warboy.device",
		ids: func(m *fixture.Machine) []string {
			return []string{"WBYB00000000010", said(m, "sys/devices/virtual/npu_mgmt/npu10_mgmt/device_uuid")}
		},
		sees: func(i int) view {
			var v view
			for _, name := range strings.Split(",_mgmt,pe0,pe1,pe0-1,ch0,ch1,ch2,ch3,_bar0,_bar2,_bar4", ",") {
				v.nodes += fmt.Sprintf(" npu%d%s", 9+i, name)
			}
			return v
		}},
}
