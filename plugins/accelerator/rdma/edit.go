package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. It provides the cards' files and lifts the limit on locked memory.
// The variables of communication libraries depend on other devices and on the session; the manager
// sets them from the attributes of the cards.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	grants := slices.Clone(r.Grants)
	slices.SortFunc(grants, func(a, b accelerator.Grant) int {
		return cmp.Compare(a.Device.GetAttributes()["name"], b.Device.GetAttributes()["name"])
	})
	e := &pb.ContainerEdits{Rlimits: driver.Memlock()}
	out := &pb.PrepareResponse{Edits: e}
	var ports []string // mlx5_0:1
	for _, g := range grants {
		at := g.Device.GetAttributes()
		if err := m.Give(e, at["node"]); err != nil {
			return nil, err
		}
		for _, port := range strings.Split(at["active_ports"], ",") {
			ports = append(ports, at["name"]+":"+port)
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	// Connections are created through the connection manager, which all cards share.
	if cm, err := m.Node("infiniband/rdma_cm"); err == nil {
		e.DeviceNodes = append(e.DeviceNodes, cm)
	}
	out.ResourceData = map[string]string{"RDMA_DEVICES": strings.Join(ports, ",")}
	return out, nil
}
