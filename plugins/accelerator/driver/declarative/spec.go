// Package declarative is a driver for accelerators that are described in YAML instead of
// programmed: which PCI functions are devices, which files a container needs, and which program
// reports their state. The plugins declarative, for any vendor that an operator describes, and
// sapeon use it.
package declarative

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Spec describes a vendor's accelerators. In its Nodes, Mounts and Env, {index} is the number of a
// device on the host, from 0 by PCI address, {number} is its number in the container, and {pci} its
// address.
type Spec struct {
	Key       string     `yaml:"key" json:"key"`
	Vendor    string     `yaml:"vendor" json:"vendor"`
	Products  []Product  `yaml:"products" json:"products"`
	Nodes     []Node     `yaml:"nodes" json:"nodes"`
	Shared    []Node     `yaml:"shared_nodes" json:"shared_nodes"` // for all devices; without placeholders
	Mounts    []Mount    `yaml:"mounts" json:"mounts"`
	Env       []Variable `yaml:"env" json:"env"`
	Memlock   bool       `yaml:"memlock" json:"memlock"` // removes the limit on locked memory
	Syscalls  []string   `yaml:"syscalls" json:"syscalls"`
	Abilities []string   `yaml:"capabilities" json:"capabilities"`
	Program   *Program   `yaml:"program" json:"program"`
	// Experimental lists the assumptions of the description. The preflight shows them as a warning.
	Experimental string `yaml:"experimental" json:"experimental"`
}

// Product is a kind of device and its slot.
type Product struct {
	Slot        string   `yaml:"slot" json:"slot"`
	Name        string   `yaml:"name" json:"name"`
	Unit        string   `yaml:"unit" json:"unit"`
	Description string   `yaml:"description" json:"description"`
	Icon        string   `yaml:"icon" json:"icon"`
	PCI         []string `yaml:"pci" json:"pci"` // vendor:device, or vendor:* for any; a class after a slash; the first product that matches counts
	Memory      uint64   `yaml:"memory_bytes" json:"memory_bytes"`
	Units       uint32   `yaml:"processing_units" json:"processing_units"`
	Reject      string   `yaml:"reject" json:"reject"` // the devices are shown but not allocatable, for this reason
}

// Node is a file of a device below /dev. It is found by its name or, if a pattern matches as many
// files as there are devices, by its position.
type Node struct {
	Path     string `yaml:"path" json:"path"`
	Glob     string `yaml:"glob" json:"glob"`
	As       string `yaml:"as" json:"as"` // in the container; empty = the same
	Optional bool   `yaml:"optional" json:"optional"`
}

// Mount is a directory or file of the driver's root to mount in the container.
type Mount struct {
	Source   string `yaml:"source" json:"source"`
	Target   string `yaml:"target" json:"target"` // empty = the same
	Writable bool   `yaml:"writable" json:"writable"`
	Optional bool   `yaml:"optional" json:"optional"`
}

// Variable is an environment variable; the values of several devices are joined.
type Variable struct {
	Name  string `yaml:"name" json:"name"`
	Value string `yaml:"value" json:"value"`
	Join  string `yaml:"join" json:"join"` // between devices; empty = a comma
}

// Program reports the state of devices.
type Program struct {
	Run    []string         `yaml:"run" json:"run"`
	Format string           `yaml:"format" json:"format"` // json or lines
	List   string           `yaml:"list" json:"list"`     // json: path to the list of devices, with dots
	Line   string           `yaml:"line" json:"line"`     // lines: a regular expression with named groups
	Match  string           `yaml:"match" json:"match"`   // field with the PCI address, or else {index}
	By     string           `yaml:"by" json:"by"`         // pci or index
	Fields map[string]Field `yaml:"fields" json:"fields"` // the values that the plugin uses
	line   *regexp.Regexp
}

// Field is a value in the program's output.
type Field struct {
	From    string   `yaml:"from" json:"from"` // path with dots, or name of a group
	Scale   float64  `yaml:"scale" json:"scale"`
	Healthy []string `yaml:"healthy" json:"healthy"` // of status: the healthy values
}

// fields are the allowed names in Program.Fields.
var fields = []string{"serial", "uuid", "model", "firmware", "status", "memory_total", "memory_used", "util", "power", "power_max", "temperature", "temperature_max"}

var (
	pciForm  = regexp.MustCompile(`^[0-9a-f]{4}:([0-9a-f]{4}|\*)(/[0-9a-f]{2,6})?$`)
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	pathForm = regexp.MustCompile(`^[A-Za-z0-9._/{}+-]{1,256}$`)
	globForm = regexp.MustCompile(`^[A-Za-z0-9._/*?\[\]-]{1,256}$`)
)

const maxList = 64

// Parse parses a description. Its error names the field.
func Parse(text []byte) (*Spec, error) {
	s := &Spec{}
	if err := yaml.UnmarshalWithOptions(text, s, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("description: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Spec) check() error {
	if len(s.Products) == 0 || len(s.Products) > maxList {
		return fmt.Errorf("products: %d, want 1 to %d", len(s.Products), maxList)
	}
	for name, n := range map[string]int{"nodes": len(s.Nodes), "shared_nodes": len(s.Shared), "mounts": len(s.Mounts), "env": len(s.Env)} {
		if n > maxList {
			return fmt.Errorf("%s: %d are more than %d", name, n, maxList)
		}
	}
	for i, p := range s.Products {
		for _, id := range p.PCI {
			if !pciForm.MatchString(id) {
				return fmt.Errorf("products[%d].pci: %q is not like 1f56:0220, 1f56:* or 1f56:*/1200", i, id)
			}
		}
	}
	for i, n := range slices.Concat(s.Nodes, s.Shared) {
		if (n.Path == "") == (n.Glob == "") || strings.Contains(n.Path+n.Glob+n.As, "..") ||
			n.Path != "" && !pathForm.MatchString(n.Path) || n.Glob != "" && !globForm.MatchString(n.Glob) {
			return fmt.Errorf("nodes[%d]: must have either a path or a glob below /dev", i)
		}
	}
	for i, m := range s.Mounts {
		if !strings.HasPrefix(m.Source, "/") || m.Target != "" && !strings.HasPrefix(m.Target, "/") || strings.Contains(m.Source+m.Target, "..") {
			return fmt.Errorf(`mounts[%d]: must be absolute paths that do not contain ".."`, i)
		}
	}
	for i, v := range s.Env {
		if !nameForm.MatchString(v.Name) {
			return fmt.Errorf("env[%d].name: %.40q is not a name", i, v.Name)
		}
	}
	if err := s.Program.check(); err != nil {
		return err
	}
	if err := accelerator.ValidateDescription(s.describe()); err != nil {
		return fmt.Errorf("description: %w", err)
	}
	return nil
}

func (p *Program) check() error {
	if p == nil {
		return nil
	}
	if len(p.Run) == 0 || strings.Contains(p.Run[0], "/") {
		return fmt.Errorf("program.run: must be the name of a program and its arguments")
	}
	switch p.Format {
	case "json":
	case "lines":
		var err error
		if p.line, err = regexp.Compile(p.Line); err != nil {
			return fmt.Errorf("program.line: %w", err)
		}
	default:
		return fmt.Errorf("program.format: %q is neither json nor lines", p.Format)
	}
	if p.By != "pci" && p.By != "index" || p.Match == "" {
		return fmt.Errorf("program: match must name a field, and by must be pci or index")
	}
	for name := range p.Fields {
		if !slices.Contains(fields, name) {
			return fmt.Errorf("program.fields: %q is not one of %s", name, strings.Join(fields, ", "))
		}
	}
	return nil
}

func (s *Spec) slots() []*pb.SlotType {
	var out []*pb.SlotType
	for _, p := range s.Products {
		if p.Slot == "" || slices.ContainsFunc(out, func(t *pb.SlotType) bool { return t.Name == p.Slot }) {
			continue
		}
		out = append(out, &pb.SlotType{
			Name: p.Slot, Kind: pb.SlotType_COUNT, DisplayName: p.Name, Description: cmp.Or(p.Description, p.Name+" of "+s.Vendor),
			Unit: cmp.Or(p.Unit, p.Name), Icon: cmp.Or(p.Icon, "npu_generic"),
		})
	}
	return out
}

func (s *Spec) describe() *pb.DescribeResponse {
	d := &pb.DescribeResponse{
		Key: s.Key, PluginVersion: "1.0.0", Vendor: s.Vendor, Slots: s.slots(), ConfigSchema: []byte(schema),
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_HEALTH, pb.Capability_CAPABILITY_RECONFIGURE, pb.Capability_CAPABILITY_WORKLOAD_METRICS},
	}
	for _, slot := range d.Slots {
		family, _, _ := strings.Cut(slot.Name, ".")
		if family != s.Key && !slices.Contains(d.Families, family) {
			d.Families = append(d.Families, family)
		}
	}
	for _, p := range s.Products {
		for _, id := range p.PCI {
			if v := id[:4]; !slices.Contains(d.PciVendors, v) {
				d.PciVendors = append(d.PciVendors, v)
			}
		}
	}
	return d
}
