package main

import (
	"context"
	"slices"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. Files keep their names: the vendor's runtime
// looks for them by their numbers.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	const unlimited = ^uint64(0)
	e := &pb.ContainerEdits{
		Rlimits: []*pb.Rlimit{{Name: "memlock", Soft: unlimited, Hard: unlimited}}, HostIpc: m.config.HostIPC,
		Mounts: []*pb.Mount{{Source: m.Root(m.config.Runtime), Target: m.config.Runtime, Recursive: true}},
	}
	if m.config.IPCLock {
		e.Capabilities = []string{"CAP_IPC_LOCK"}
	}
	out := &pb.PrepareResponse{Edits: e}
	for _, g := range r.Grants {
		d := g.Device
		for _, name := range []string{d.GetAttributes()["node"], d.GetAttributes()["render_node"]} {
			node, err := m.Node(name)
			if err != nil {
				return nil, err
			}
			e.DeviceNodes = append(e.DeviceNodes, node)
			if gid := m.Group(name); gid != 0 && !slices.Contains(e.AdditionalGids, gid) {
				e.AdditionalGids = append(e.AdditionalGids, gid)
			}
		}
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: d.GetId(), Model: d.GetModel(), MemoryBytes: d.GetMemoryBytes(), ProcessingUnits: d.GetProcessingUnits(),
		})
	}
	return out, nil
}
