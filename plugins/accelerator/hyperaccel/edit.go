package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. Files keep their names, because the vendor's runtime finds them
// by their numbers.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{
		Rlimits: driver.Memlock(), HostIpc: m.config.HostIPC,
		Mounts: []*pb.Mount{{Source: m.Root(m.config.Runtime), Target: m.config.Runtime, Recursive: true}},
	}
	if m.config.IPCLock {
		e.Capabilities = []string{"CAP_IPC_LOCK"}
	}
	out := &pb.PrepareResponse{Edits: e}
	for _, g := range r.Grants {
		if err := m.Give(e, g.Device.GetAttributes()["node"], g.Device.GetAttributes()["render_node"]); err != nil {
			return nil, err
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	return out, nil
}
