package main

import (
	"context"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// counterUnit is the unit of the ports' counters, four bytes.
// Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband.
const counterUnit = 4

// Sample implements driver.Sampler. It returns the traffic of the active ports since the card was
// reset.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		at := d.GetAttributes()
		if at["active_ports"] == "" {
			continue
		}
		for name, file := range map[string]string{"rx": "port_rcv_data", "tx": "port_xmit_data"} {
			var sum float64
			var failed error
			for _, port := range strings.Split(at["active_ports"], ",") {
				n, err := driver.Float(m.class(at["name"], "ports", port, "counters", file))
				if err != nil {
					failed = err
				}
				sum += n * counterUnit
			}
			out = append(out, driver.Count(key+"_"+name, d.GetId(), "bytes", sum, failed))
		}
	}
	return out
}
