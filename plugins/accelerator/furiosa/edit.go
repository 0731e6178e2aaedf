package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// nodeForm classifies the device files of a card by their suffix: elements (first and last), files
// that all partitions need, and files that only a whole card gets.
var nodeForm = regexp.MustCompile(`^(?:pe([0-9])(?:-([0-9]))?|(_?mgmt|ch[0-9]{1,2}r?|dmar|)|(_?bar[0-9]))$`)

// nodes returns the device files of a card or a partition, below /dev.
func (m *machine) nodes(d *pb.Device) ([]string, error) {
	card := "npu" + d.GetAttributes()["number"]
	dir := "rngd"
	if d.GetCapacity()[warboySlot] != "" {
		dir = ""
	}
	first, last := span(d)
	_, part := d.GetAttributes()["elements"]
	var out []string
	for _, name := range driver.Names(m.Dev(dir)) {
		rest, ok := strings.CutPrefix(name, card)
		found := nodeForm.FindStringSubmatch(rest)
		if !ok || found == nil || part && found[4] != "" || !inside(found[1], found[2], first, last) {
			continue
		}
		out = append(out, strings.TrimPrefix(dir+"/"+name, "/"))
	}
	need := []string{card + "mgmt", card + fused(first, last)}
	if dir == "" {
		need[0] = card + "_mgmt"
	} else if !part {
		need[1] = card + "pe0" // there is no file for all eight elements
	}
	for _, name := range need {
		if name = strings.TrimPrefix(dir+"/"+name, "/"); !slices.Contains(out, name) {
			return nil, fmt.Errorf("/dev/%s is missing", name)
		}
	}
	return out, nil
}

// inside reports whether a file's elements, if it has any, are all in a range.
func inside(a, b string, first, last int) bool {
	if a == "" {
		return true
	}
	from, _ := strconv.Atoi(a)
	to := from
	if b != "" {
		to, _ = strconv.Atoi(b)
	}
	return from >= first && to <= last
}

// Edit implements driver.Machine. Files keep the host's names, as with the vendor's own plugin,
// because the runtime finds cards by them and by /sys.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{
		// The runtime pins the memory that it transfers to the device.
		Rlimits: driver.Memlock(),
	}}
	for _, g := range driver.InOrder(r.Grants, "number") {
		names, err := m.nodes(g.Device)
		if err != nil {
			return nil, err
		}
		if err := m.Give(out.Edits, names...); err != nil { // partitions of a card share some files
			return nil, err
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	return out, nil
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	loaded := driver.Exists(m.Sys("class/rngd_mgmt")) || driver.Exists(m.Sys("class/npu_mgmt"))
	_, err := m.smi(ctx)
	return []*pb.Check{
		driver.Checked("driver", loaded, "loaded", "not loaded: neither /sys/class/rngd_mgmt nor /sys/class/npu_mgmt is there"),
		driver.Optional(driver.Tried("furiosa-smi", err, "works", "power and temperature are not known without it")),
	}
}
