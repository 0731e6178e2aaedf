package declarative

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// fill replaces the placeholders in a text by a device's numbers.
func fill(text string, index, number int, pci string) string {
	return strings.NewReplacer("{index}", strconv.Itoa(index), "{number}", strconv.Itoa(number), "{pci}", pci).Replace(text)
}

// files returns the files of a device, or the shared ones.
func (m *machine) files(list []Node, index, number int, pci string) ([]*pb.DeviceNode, error) {
	var out []*pb.DeviceNode
	for _, n := range list {
		name := fill(n.Path, index, number, pci)
		if n.Glob != "" {
			var err error
			if name, err = m.whose(n.Glob, index, pci); err != nil {
				if n.Optional {
					continue
				}
				return nil, err
			}
		}
		node, err := m.Node(name)
		if err != nil {
			if n.Optional {
				continue
			}
			return nil, err
		}
		if n.As != "" {
			node.Path = filepath.Join("/dev", fill(n.As, index, number, pci))
		}
		out = append(out, node)
	}
	return out, nil
}

// whose returns the file of a device among those that match a pattern. There must be as many files
// as devices, either present or ever seen, in the same order.
func (m *machine) whose(pattern string, index int, pci string) (string, error) {
	all := m.glob(pattern)
	m.mu.Lock()
	seen := slices.Clone(m.seen)
	m.mu.Unlock()
	if pci == "" && len(all) > 0 { // a shared file
		return all[0], nil
	}
	if len(all) == len(seen) {
		return all[index], nil
	}
	here := slices.DeleteFunc(seen, func(a string) bool { return !driver.Exists(m.Sys("bus/pci/devices", a)) })
	if i := slices.Index(here, pci); i >= 0 && len(all) == len(here) {
		return all[i], nil
	}
	return "", fmt.Errorf("%d files /dev/%s for %d devices: cannot match files to devices", len(all), pattern, len(here))
}

// glob returns the files below /dev that match a pattern, ordered by their numbers.
func (m *machine) glob(pattern string) []string {
	dir, base := filepath.Split(pattern)
	var out []string
	for _, name := range driver.Names(m.Dev(dir)) {
		if ok, err := filepath.Match(base, name); ok && err == nil {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{Env: map[string]string{}, Syscalls: m.Syscalls, Capabilities: m.Abilities}
	out := &pb.PrepareResponse{Edits: e}
	values := make([][]string, len(m.Env))
	for number, g := range r.Grants {
		d := g.Device
		index, err := strconv.Atoi(d.GetAttributes()["index"])
		if err != nil {
			return nil, fmt.Errorf("device %s has no index", d.GetId())
		}
		nodes, err := m.files(m.Nodes, index, number, d.GetPciAddress())
		if err != nil {
			return nil, err
		}
		e.DeviceNodes = append(e.DeviceNodes, nodes...)
		for i, v := range m.Env {
			values[i] = append(values[i], fill(v.Value, index, number, d.GetPciAddress()))
		}
		out.Attached = append(out.Attached, driver.Attached(d))
	}
	shared, err := m.files(m.Shared, 0, 0, "")
	if err != nil {
		return nil, err
	}
	e.DeviceNodes = append(e.DeviceNodes, shared...)
	for i, v := range m.Env {
		e.Env[v.Name] = strings.Join(values[i], cmp.Or(v.Join, ","))
	}
	for _, mount := range m.Mounts {
		e.Mounts = append(e.Mounts, &pb.Mount{
			Source: m.Root(mount.Source), Target: cmp.Or(mount.Target, mount.Source), Writable: mount.Writable, Recursive: true, Optional: mount.Optional,
		})
	}
	if m.Memlock {
		e.Rlimits = driver.Memlock()
	}
	return out, nil
}
