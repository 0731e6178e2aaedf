package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. In the container NPUs are numbered from 0 and the group is rsd0,
// as the vendor's runtime expects.
func (m *machine) Edit(ctx context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	var buses []string
	for _, g := range slices.SortedFunc(slices.Values(r.Grants), byPlace) {
		buses = append(buses, strings.Split(g.Device.GetAttributes()["npus"], ",")...)
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	now, group, err := m.grouped(ctx, r.GetAllocationId(), buses, out)
	if err != nil {
		return nil, err
	}
	for i, bus := range buses {
		n := now.at(bus)
		if n == nil {
			return nil, fmt.Errorf("the NPU at %s was removed", bus)
		}
		node, err := m.node(n)
		if err != nil {
			return nil, err
		}
		node.Path = fmt.Sprintf("/dev/rbln%d", i)
		out.Edits.DeviceNodes = append(out.Edits.DeviceNodes, node)
		out.Edits.AdditionalGids = m.gid(out.Edits.AdditionalGids, string(n.Node))
	}
	if err := m.addGroupNode(out.Edits, group); err != nil {
		return nil, err
	}
	if m.config.Libraries {
		m.addLibraries(out.Edits)
	}
	return out, nil
}

func byPlace(a, b accelerator.Grant) int {
	return cmp.Compare(a.Device.GetPciAddress(), b.Device.GetPciAddress())
}

// grouped creates the RSD group of the NPUs.
func (m *machine) grouped(ctx context.Context, allocation string, buses []string, out *pb.PrepareResponse) (*report, string, error) {
	if len(buses) == 1 && !m.config.GroupSingle {
		r, err := m.groups(ctx)
		if err != nil {
			return nil, "", err
		}
		if n := r.at(buses[0]); n != nil {
			return r, n.group(), nil
		}
		return r, everybodys, nil
	}
	r, mine, err := m.join(ctx, allocation, buses)
	if err != nil {
		return nil, "", err
	}
	mine.Allocation = "" // the agent has the allocation
	out.State, err = json.Marshal(mine)
	return r, mine.Group, err
}

// node returns an NPU's device file.
func (m *machine) node(n *npu) (*pb.DeviceNode, error) {
	if !nodeForm.MatchString(string(n.Node)) {
		return nil, fmt.Errorf("device of %s is %q", n.PCI.Bus, n.Node)
	}
	return m.Node(string(n.Node))
}

// addGroupNode adds the group's device file. Drivers before RSD have no file for the default group.
func (m *machine) addGroupNode(e *pb.ContainerEdits, group string) error {
	name := "rsd" + group
	if group == everybodys && !driver.Exists(m.Dev(name)) {
		return nil
	}
	node, err := m.Node(name)
	if err != nil {
		return err
	}
	node.Path = "/dev/rsd0"
	e.DeviceNodes = append(e.DeviceNodes, node)
	e.AdditionalGids = m.gid(e.AdditionalGids, name)
	return nil
}

// gid adds the group that owns a device file.
func (m *machine) gid(list []uint32, node string) []uint32 {
	id := m.Group(node)
	if id == 0 || slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}

const (
	libraryDir   = "/usr/local/rebellions/lib"
	maxLibraries = 64
)

var libraryForm = regexp.MustCompile(`^librbln-[A-Za-z0-9_-]+\.so[0-9.]*$`)

// addLibraries mounts the user-mode libraries of the driver, so that an image need not match the
// host's driver.
func (m *machine) addLibraries(e *pb.ContainerEdits) {
	seen := map[string]bool{}
	for _, dir := range []string{"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib", "usr/local/lib"} {
		for _, name := range driver.Names(m.Root(dir)) {
			if !libraryForm.MatchString(name) || seen[name] || len(seen) == maxLibraries {
				continue
			}
			seen[name] = true
			e.Mounts = append(e.Mounts, &pb.Mount{Source: m.Root(dir, name), Target: libraryDir + "/" + name})
		}
	}
	if len(seen) > 0 {
		e.LibraryDirs = []string{libraryDir}
	}
	if tool := m.Root("usr/bin/rbln-smi"); driver.Exists(tool) {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: tool, Target: "/usr/local/bin/rbln-smi"})
	}
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	works := "works"
	r, err := m.ask(ctx)
	if err == nil && r.Driver != "" {
		works = "driver " + string(r.Driver)
	}
	return []*pb.Check{
		driver.Tried("rbln-smi", err, works, ""),
		driver.Checked("rsd", driver.Exists(m.Dev("rsd0")), "/dev/rsd0 is there", "/dev/rsd0 is missing: the driver is too old to group NPUs"),
	}
}
