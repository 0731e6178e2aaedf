package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// machine is a host with RDUs.
type machine struct {
	*driver.Host
	config config
}

// perXRDU is the number of RDUs in an XRDU.
const perXRDU = 2

// Scan implements driver.Machine.
func (m *machine) Scan(ctx context.Context) (*pb.DeviceSnapshot, error) {
	s := &pb.DeviceSnapshot{Slots: slots(), DriverInfo: map[string]string{}}
	if !m.config.Tiles {
		s.Slots = s.Slots[:1]
	}
	sys, err := m.system(ctx)
	if err != nil || sys == nil {
		return s, err
	}
	if sys.platform != "" {
		s.DriverInfo["platform"] = sys.platform
	}
	for i, r := range sys.rdus {
		d := m.device(sys.platform, r)
		s.Devices = append(s.Devices, d)
		if m.config.Tiles && len(r.tiles) > 0 {
			m.partitions(s, d, r)
		}
		for _, other := range sys.rdus[:i] {
			if other.xrdu == r.xrdu && max(other.number, r.number) < perXRDU {
				s.Links = append(s.Links, &pb.Link{A: id(other), B: d.Id, Type: pb.Link_SAME_BOARD, Distance: 10})
			}
		}
	}
	return s, nil
}

// id returns an RDU's serial number, or else its location.
func id(r *rdu) string {
	if accelerator.IsDeviceID(r.serial) {
		return r.serial
	}
	return place(r)
}

func place(r *rdu) string { return fmt.Sprintf("XRDU_%d/RDU_%d", r.xrdu, r.number) }

func (m *machine) device(platform string, r *rdu) *pb.Device {
	d := &pb.Device{
		Id: id(r), Model: strings.TrimSpace(strings.TrimPrefix(platform, "DataScale") + " RDU"), Serial: r.serial, MemoryBytes: r.memory,
		ProcessingUnits: uint32(len(r.tiles)), Health: pb.Health_HEALTH_HEALTHY, Allocatable: true, Capacity: map[string]string{whole: "1"},
		Groups:     []string{fmt.Sprintf("XRDU_%d", r.xrdu)},
		Attributes: map[string]string{"place": place(r), "xrdu": strconv.Itoa(r.xrdu), "rdu": strconv.Itoa(r.number), "tiles": strconv.Itoa(len(r.tiles))},
	}
	switch {
	case platform == "":
		driver.Reject(d, "neither SNML nor snconfig reports the platform")
	case !supported(platform):
		driver.Reject(d, "platform %q is not one of %s", platform, strings.Join(platforms, ", "))
	}
	if len(r.tiles) == 0 {
		driver.Reject(d, "it has no tiles")
	}
	if r.number >= perXRDU { // its files would belong to the next XRDU
		driver.Reject(d, "RDU_%d is not known: an XRDU has %d", r.number, perXRDU)
	}
	for _, name := range m.nodes(d) {
		if _, err := m.Node(name); err != nil {
			driver.Reject(d, "%v; name its file in the setting nodes", err)
		}
	}
	if bad(r.state) {
		unhealthy(d, "snconfig reports the state %s", r.state)
	}
	for _, n := range slices.Sorted(maps.Keys(r.tiles)) {
		if d.Health == pb.Health_HEALTH_HEALTHY && bad(r.tiles[n]) {
			d.Health, d.HealthMessage = pb.Health_HEALTH_DEGRADED, driver.Clean(fmt.Sprintf("snconfig reports the state %[2]s of TILE_%[1]d", n, r.tiles[n]), 200)
			driver.Reject(d, "%s", d.HealthMessage)
		}
	}
	return d
}

func unhealthy(d *pb.Device, format string, args ...any) {
	d.Health, d.HealthMessage = pb.Health_HEALTH_UNHEALTHY, driver.Clean(fmt.Sprintf(format, args...), 200)
	driver.Reject(d, "%s", d.HealthMessage)
}

// bad reports whether a device cannot work in a state. The possible states are not documented, so
// unknown ones count as good.
func bad(state string) bool {
	for _, word := range []string{"error", "fault", "fail", "hung", "down", "offline", "unavailable", "imperfect", "not perfect"} {
		if strings.Contains(state, word) {
			return true
		}
	}
	return false
}

// partitions adds an RDU's tiles. The tiles and the RDU consume the same counter.
func (m *machine) partitions(s *pb.DeviceSnapshot, of *pb.Device, r *rdu) {
	all := map[string]string{"tiles": strconv.Itoa(len(r.tiles))}
	s.Counters = append(s.Counters, &pb.CounterSet{Name: of.Id, Counters: all})
	of.Consumes = []*pb.CounterUse{{Set: of.Id, Amounts: all}}
	for _, n := range slices.Sorted(maps.Keys(r.tiles)) {
		d := &pb.Device{
			Id: fmt.Sprintf("%s/TILE_%d", of.Id, n), ParentId: of.Id, Model: of.Model + " tile", Serial: of.Serial, ProcessingUnits: 1,
			Health: of.Health, HealthMessage: of.HealthMessage, Allocatable: true, Capacity: map[string]string{part: "1"}, Groups: of.Groups,
			Attributes: map[string]string{"place": fmt.Sprintf("%s/TILE_%d", place(r), n), "xrdu": strconv.Itoa(r.xrdu), "rdu": strconv.Itoa(r.number), "tile": strconv.Itoa(n)},
			Consumes:   []*pb.CounterUse{{Set: of.Id, Amounts: map[string]string{"tiles": "1"}}},
		}
		for _, why := range of.RejectReasons {
			if why != of.HealthMessage || of.Health != pb.Health_HEALTH_DEGRADED { // of another tile
				driver.Reject(d, "%s", why)
			}
		}
		if of.Health == pb.Health_HEALTH_DEGRADED {
			d.Health, d.HealthMessage = pb.Health_HEALTH_HEALTHY, ""
		}
		if bad(r.tiles[n]) {
			unhealthy(d, "snconfig reports the state %s", r.tiles[n])
		}
		s.Devices = append(s.Devices, d)
	}
}
