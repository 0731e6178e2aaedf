// Command template is a complete accelerator plugin to copy, for the cards of the fictional vendor
// ACME. Their driver creates a directory /sys/class/acme/acmeN for each card, with the files uuid,
// model, memory (bytes) and busy (percent), and a device file /dev/acmeN.
package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func main() { driver.Serve(acme{}) }

// acme has the parts that are the same on every machine.
type acme struct{}

var slot = &pb.SlotType{
	Name: "acme.device", Kind: pb.SlotType_COUNT,
	DisplayName: "ACME", Description: "A whole ACME card", Unit: "card", Icon: "npu_generic",
}

func (acme) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Key: "acme", PluginVersion: "0.1.0", Vendor: "ACME", PciVendors: []string{"ac3e"},
		Slots:        []*pb.SlotType{slot},
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE},
	}
}

// Open has no settings to parse; see accelerator.DecodeConfig.
func (acme) Open(h *driver.Host, config []byte) (driver.Machine, error) {
	if len(config) > 0 {
		return nil, errors.New("config_json: this plugin has no settings")
	}
	return machine{h}, nil
}

// machine is a host with ACME cards.
type machine struct{ *driver.Host }

// Scan reads the hardware. It is called every two seconds.
func (m machine) Scan(context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: []*pb.SlotType{slot}}
	for _, card := range driver.Names(m.Sys("class/acme")) {
		dir := m.Sys("class/acme", card)
		d := &pb.Device{
			Id: driver.Text(dir, "uuid"), Model: cmp.Or(driver.Text(dir, "model"), "ACME card"),
			Attributes: map[string]string{"node": card}, Capacity: map[string]string{slot.Name: "1"},
			Health: pb.Health_HEALTH_HEALTHY, Allocatable: true,
		}
		if !accelerator.IsDeviceID(d.Id) { // show a device that cannot be used, with the reason
			d.Id = card
			driver.Reject(d, "its uuid cannot be read")
		}
		var err error
		if d.MemoryBytes, err = driver.Uint(dir, "memory"); err != nil {
			driver.Reject(d, "%v", err)
		}
		s.Devices = append(s.Devices, d)
	}
	return s, nil
}

// Edit returns what a container needs. The cards are numbered from 0 in it.
func (m machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{Env: map[string]string{"ACME_CARDS": strconv.Itoa(len(r.Grants))}}}
	for i, g := range r.Grants {
		node, err := m.Node(g.Device.GetAttributes()["node"])
		if err != nil {
			return nil, err
		}
		node.Path = "/dev/acme" + strconv.Itoa(i)
		out.Edits.DeviceNodes = append(out.Edits.DeviceNodes, node)
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: g.Device.GetId(), Model: g.Device.GetModel(), MemoryBytes: g.Device.GetMemoryBytes(),
		})
	}
	return out, nil
}

// Sample measures the devices. A missing value is UNAVAILABLE, not zero.
func (m machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		all := 100.0
		u := &pb.Metric{Name: "acme_util", DeviceId: d.GetId(), Unit: "percent", Kind: pb.Metric_UTILIZATION, Capacity: &all, Quality: pb.Metric_UNAVAILABLE}
		busy, err := driver.Float(m.Sys("class/acme", d.GetAttributes()["node"], "busy"))
		if err == nil && busy >= 0 && busy <= all {
			u.Value, u.Quality = busy, pb.Metric_MEASURED
		}
		out = append(out, u)
	}
	return out
}
