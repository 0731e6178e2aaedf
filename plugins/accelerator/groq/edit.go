package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. A card keeps its number in the container, because the vendor's
// runtime uses the cards whose files it finds.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{Rlimits: driver.Memlock()}
	out := &pb.PrepareResponse{Edits: e}
	for _, g := range r.Grants {
		if err := m.Give(e, g.Device.GetAttributes()["node"]); err != nil {
			return nil, err
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	if m.config.Runtime != "" {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: m.Root(m.config.Runtime), Target: m.config.Runtime, Recursive: true, Optional: true})
	}
	if m.config.Hugepages {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: m.Dev("hugepages"), Target: "/dev/hugepages", Writable: true, Recursive: true, Optional: true})
	}
	return out, nil
}
