package main

import (
	"context"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. Level Zero, OpenCL and the media drivers use every GPU whose
// files they find, and number them from 0. It sets no mask (ZE_AFFINITY_MASK), because the program
// determines whether a mask counts tiles or cards.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	var ids []string
	for _, g := range r.Grants {
		a := g.Device.GetAttributes()
		nodes := []string{a["node"]}
		if a["card"] != "" {
			nodes = append(nodes, a["card"])
		}
		if err := m.Give(out.Edits, nodes...); err != nil {
			return nil, err
		}
		ids = append(ids, g.Device.GetId())
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	out.ResourceData = map[string]string{"XPU_DEVICES": strings.Join(ids, ",")}
	return out, nil
}

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	loaded := driver.Exists(m.Sys("module/xe")) || driver.Exists(m.Sys("module/i915"))
	return []*pb.Check{
		driver.Checked("driver", loaded, "xe or i915 is loaded", "neither xe nor i915 is loaded"),
		driver.Checked("device-nodes", driver.Exists(m.Dev("dri")), "/dev/dri exists", "/dev/dri is missing"),
	}
}
