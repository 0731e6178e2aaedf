package main

import (
	"context"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	nodes, indices, ids := []string{"kfd"}, []string{}, []string{}
	for i, g := range driver.InOrder(r.Grants, "kfd_node") { // in the order in which programs number them
		nodes = append(nodes, g.Device.GetAttributes()["node"])
		indices, ids = append(indices, strconv.Itoa(i)), append(ids, g.Device.GetId())
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	if err := m.host.Give(out.Edits, nodes...); err != nil {
		return nil, err
	}
	// The kernel hides GPUs from a container whose render nodes it cannot open, so both runtimes
	// number the visible ones from 0.
	visible := strings.Join(indices, ",")
	out.Edits.Env = map[string]string{"ROCR_VISIBLE_DEVICES": visible, "HIP_VISIBLE_DEVICES": visible}
	if m.NUMASyscalls {
		out.Edits.Syscalls = []string{"get_mempolicy", "mbind", "set_mempolicy"}
	}
	out.ResourceData = map[string]string{"ROCM_DEVICES": strings.Join(ids, ",")}
	return out, nil
}
