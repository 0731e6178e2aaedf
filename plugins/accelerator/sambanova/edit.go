package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// nodes returns the device files of an RDU, or of the RDU of a tile.
func (m *machine) nodes(d *pb.Device) []string {
	xrdu, rdu := driver.Number(d, "xrdu"), driver.Number(d, "rdu")
	fill := strings.NewReplacer("{xrdu}", strconv.Itoa(xrdu), "{rdu}", strconv.Itoa(rdu), "{index}", strconv.Itoa(xrdu*perXRDU+rdu))
	var out []string
	for _, n := range m.config.Nodes {
		out = append(out, fill.Replace(n))
	}
	return out
}

// Edit implements driver.Machine. Only the variable of the setting env identifies the workload's
// tiles.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{Rlimits: driver.Memlock()}
	out := &pb.PrepareResponse{Edits: e}
	var places []string
	for _, g := range r.Grants {
		if err := m.Give(e, m.nodes(g.Device)...); err != nil {
			return nil, err
		}
		places = append(places, "/"+g.Device.GetAttributes()["place"])
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	if err := m.Give(e, m.config.Shared...); err != nil {
		return nil, err
	}
	if name := m.config.Env; name != "" {
		out.ResourceData = map[string]string{name: strings.Join(places, ",")}
		e.Env = map[string]string{name: out.ResourceData[name]}
	}
	return out, nil
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	check := func(name string, err error) *pb.Check { return driver.Tried(name, err, "answers", "") }
	_, noPlatform := m.platform(ctx)
	_, noTree := m.Ask(ctx, "snconfig", "show", "Node", "static")
	_, noTiles := m.tilestat(ctx)
	named := !slices.Equal(m.config.Nodes, assumedNodes)
	return []*pb.Check{
		check("snml", noPlatform), check("snconfig", noTree), check("sntilestat", noTiles),
		driver.Optional(driver.Checked("experimental", named, "device files are named by the settings",
			"experimental: the names of device files are assumed (/dev/rdu0 …); set them in the setting nodes")),
	}
}
