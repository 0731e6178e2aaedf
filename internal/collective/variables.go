package collective

import (
	"maps"
	"strings"
)

// masterPort is the port on which torchrun's first process listens by default.
const masterPort = "29500"

// Files in the container, which package agent/runner/peer writes.
const (
	hostfile    = "/opt/berth/cluster/hostfile"
	machinefile = "/opt/berth/cluster/machinefile"
)

// Variables returns the environment variables of a kernel. The session's own environment replaces them.
func Variables(k Kernel) map[string]string {
	env := k.identity()
	if len(k.Hosts) > 1 {
		maps.Copy(env, k.launchers())
	}
	maps.Copy(env, k.libraries())
	return env
}

// identity returns the index of this kernel and the number of kernels, also under the names that
// images for Backend.AI read. Those count each role from 1.
func (k Kernel) identity() map[string]string {
	role, ofRole, replicas := "main", 1, "main:1"
	if k.Index > 0 {
		role, ofRole = "sub", k.Index
	}
	size := len(k.Hosts)
	if size > 1 {
		replicas += ",sub:" + number(size-1)
	}
	hosts := strings.Join(k.Hosts, ",")
	return map[string]string{
		"BERTH_CLUSTER_SIZE": number(size), "BERTH_CLUSTER_IDX": number(k.Index), "BERTH_CLUSTER_ROLE": role,
		"BERTH_CLUSTER_HOST": k.Hosts[k.Index], "BERTH_CLUSTER_HOSTS": hosts,

		"BACKENDAI_CLUSTER_SIZE": number(size), "BACKENDAI_CLUSTER_IDX": number(ofRole), "BACKENDAI_CLUSTER_ROLE": role,
		"BACKENDAI_CLUSTER_HOST": k.Hosts[k.Index], "BACKENDAI_CLUSTER_HOSTS": hosts,
		"BACKENDAI_CLUSTER_LOCAL_RANK": number(k.Index), "BACKENDAI_CLUSTER_REPLICAS": replicas,
	}
}

// launchers are the variables of the programs that start processes in several kernels. RANK and
// WORLD_SIZE are absent: a library that finds them treats every program as a part of a job, and
// waits for the other parts.
func (k Kernel) launchers() map[string]string {
	main, slots := k.Hosts[0], k.Slots()
	return map[string]string{
		"MASTER_ADDR": main, "MASTER_PORT": masterPort,
		"PET_MASTER_ADDR": main, "PET_MASTER_PORT": masterPort,
		"PET_NNODES": number(len(k.Hosts)), "PET_NODE_RANK": number(k.Index), "PET_NPROC_PER_NODE": number(slots),

		"OMPI_MCA_orte_default_hostfile": hostfile, "PRTE_MCA_prte_default_hostfile": hostfile,
		"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
		"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
		"HYDRA_HOST_FILE": machinefile, "I_MPI_HYDRA_HOST_FILE": machinefile,
		"HOROVOD_GLOO_IFACE": Interface,
	}
}

// libraries are the variables of communication libraries. They are set for kernels that have something
// to communicate with: other kernels, several accelerators, or RDMA cards.
func (k Kernel) libraries() map[string]string {
	env := map[string]string{}
	ports := k.ports()
	accelerators := k.accelerators()
	if len(k.Hosts) < 2 && len(accelerators) < 2 && len(ports) == 0 {
		return env
	}
	env["GLOO_SOCKET_IFNAME"] = Interface
	if len(ports) > 0 || len(k.of(nvidia, amd)) > 0 {
		env["NCCL_SOCKET_IFNAME"] = "=" + Interface // "=": exactly this name
	}
	if len(ports) > 0 || len(k.of(gaudi)) > 0 {
		env["HCCL_SOCKET_IFNAME"] = Interface
	}
	switch {
	case len(ports) > 0:
		maps.Copy(env, k.fabric(ports))
	case len(k.Hosts) > 1:
		env["UCX_NET_DEVICES"], env["UCX_TLS"] = Interface, k.transports("tcp")
	}
	return env
}

// fabric are the variables of a kernel with RDMA cards.
func (k Kernel) fabric(ports []string) map[string]string {
	list := strings.Join(ports, ",")
	env := map[string]string{
		"NCCL_IB_HCA":     "=" + list, // "=": exactly these
		"UCX_NET_DEVICES": list, "UCX_TLS": k.transports("rc,ud"),
	}
	if index := k.roce(); index != "" {
		env["NCCL_IB_GID_INDEX"], env["UCX_IB_GID_INDEX"] = index, index
	}
	if len(k.of(gaudi)) > 0 {
		env["HCCL_OVER_OFI"] = "1" // over the cards of the machine, not the accelerators' own ports
	}
	for _, s := range Direct(k) {
		if s.Feature == RDMA && s.Available {
			env["NCCL_NET_GDR_LEVEL"] = s.level
		}
	}
	return env
}

// transports returns UCX's transports: between machines, between processes, and to the accelerators'
// memory.
func (k Kernel) transports(network string) string {
	list := network + ",sm,self"
	if len(k.of(nvidia)) > 0 {
		list += ",cuda_copy,cuda_ipc"
	}
	if len(k.of(amd)) > 0 {
		list += ",rocm_copy,rocm_ipc"
	}
	return list
}
