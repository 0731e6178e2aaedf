package main

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// cut adds the groups of processing elements as which a card can be allocated. Each element is a
// counter of the card, so that overlapping groups are never allocated together.
func (m *machine) cut(s *pb.DeviceSnapshot, whole *pb.Device) {
	if len(m.config.Groups) == 0 {
		return
	}
	set := &pb.CounterSet{Name: whole.GetId(), Counters: take(0, elements-1)}
	s.Counters = append(s.Counters, set)
	whole.Consumes = []*pb.CounterUse{{Set: set.Name, Amounts: take(0, elements-1)}}
	for _, n := range m.config.Groups {
		for first := 0; first < elements; first += n {
			s.Devices = append(s.Devices, m.part(whole, set.Name, first, first+n-1))
		}
	}
}

// take returns a consumption of one for each element of a range.
func take(first, last int) map[string]string {
	out := map[string]string{}
	for i := first; i <= last; i++ {
		out["pe"+strconv.Itoa(i)] = "1"
	}
	return out
}

// part returns the device for a range of a card's elements.
func (m *machine) part(whole *pb.Device, set string, first, last int) *pb.Device {
	d := proto.Clone(whole).(*pb.Device)
	n := last - first + 1
	name := fused(first, last)
	d.Id, d.ParentId = whole.GetId()+"/"+name, whole.GetId()
	d.Model = fmt.Sprintf("%s (%d PE)", whole.GetModel(), n)
	d.MemoryBytes = whole.GetMemoryBytes() / elements * uint64(n)
	d.ProcessingUnits = uint32(n)
	d.Attributes["elements"] = strings.TrimPrefix(name, "pe")
	d.Capacity = map[string]string{groupSlot(n): "1"}
	d.Consumes = []*pb.CounterUse{{Set: set, Amounts: take(first, last)}}
	if d.GetAllocatable() {
		if _, err := m.nodes(d); err != nil {
			driver.Reject(d, "%v", err)
		}
	}
	return d
}

// fused returns the driver's name of fused elements: pe0, pe4-7.
func fused(first, last int) string {
	if first == last {
		return fmt.Sprintf("pe%d", first)
	}
	return fmt.Sprintf("pe%d-%d", first, last)
}

// span returns the range of a device's elements: 2-3, or all.
func span(d *pb.Device) (first, last int) {
	text := d.GetAttributes()["elements"]
	if text == "" {
		return 0, int(d.GetProcessingUnits()) - 1
	}
	a, b, fused := strings.Cut(text, "-")
	first, _ = strconv.Atoi(a)
	if last = first; fused {
		last, _ = strconv.Atoi(b)
	}
	return first, last
}
