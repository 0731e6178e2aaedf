package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	grants := slices.Clone(r.Grants)
	slices.SortFunc(grants, func(a, b accelerator.Grant) int { // programs count in KFD's order
		return cmp.Compare(kfdNode(a.Device), kfdNode(b.Device))
	})
	e := &pb.ContainerEdits{}
	out := &pb.PrepareResponse{Edits: e}
	nodes, indices, ids := []string{"kfd"}, []string{}, []string{}
	for i, g := range grants {
		d := g.Device
		nodes = append(nodes, d.GetAttributes()["node"])
		indices, ids = append(indices, strconv.Itoa(i)), append(ids, d.GetId())
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: d.GetId(), Model: d.GetModel(), MemoryBytes: d.GetMemoryBytes(), ProcessingUnits: d.GetProcessingUnits(),
		})
	}
	for _, name := range nodes {
		n, err := m.host.Node(name)
		if err != nil {
			return nil, err
		}
		e.DeviceNodes = append(e.DeviceNodes, n)
		if gid := m.host.Group(name); gid != 0 && !slices.Contains(e.AdditionalGids, gid) {
			e.AdditionalGids = append(e.AdditionalGids, gid)
		}
	}
	// The kernel shows a container only the GPUs whose render nodes it may open, so
	// both runtimes count from 0.
	visible := strings.Join(indices, ",")
	e.Env = map[string]string{"ROCR_VISIBLE_DEVICES": visible, "HIP_VISIBLE_DEVICES": visible}
	if m.NUMASyscalls {
		e.Syscalls = []string{"get_mempolicy", "mbind", "set_mempolicy"}
	}
	out.ResourceData = map[string]string{"ROCM_DEVICES": strings.Join(ids, ",")}
	return out, nil
}

func kfdNode(d *pb.Device) int {
	n, _ := strconv.Atoi(d.GetAttributes()["kfd_node"])
	return n
}
