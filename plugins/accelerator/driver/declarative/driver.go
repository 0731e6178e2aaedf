package declarative

import (
	"fmt"
	"slices"
	"sync"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// settings are the plugin's section of the agent's configuration: the parts of a description that
// differ between sites.
type settings struct {
	PCI     map[string][]string `json:"pci"` // of products, by slot
	Nodes   []Node              `json:"nodes"`
	Mounts  []Mount             `json:"mounts"`
	Program *Program            `json:"program"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "pci": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}, "description": "By slot, the PCI devices of a product, instead of those described: 1f56:0220"},
    "nodes": {"type": "array", "maxItems": 64, "description": "Device files of a device, instead of those described", "items": {"type": "object"}},
    "mounts": {"type": "array", "maxItems": 64, "description": "Files of the driver, instead of those described", "items": {"type": "object"}},
    "program": {"type": "object", "description": "The program that says how devices are, instead of the one described"}
  }
}`

// New returns the driver of the described devices.
func New(s *Spec) driver.Driver { return vendor{s} }

type vendor struct{ *Spec }

// Describe implements driver.Driver.
func (v vendor) Describe() *pb.DescribeResponse { return v.describe() }

// Open implements driver.Driver.
func (v vendor) Open(h *driver.Host, raw []byte) (driver.Machine, error) {
	own := settings{Nodes: v.Nodes, Mounts: v.Mounts, Program: v.Program}
	if err := accelerator.DecodeConfig(raw, &own); err != nil {
		return nil, err
	}
	spec := *v.Spec
	spec.Nodes, spec.Mounts, spec.Program = own.Nodes, own.Mounts, own.Program
	if len(own.Nodes) > 0 && !slices.Equal(own.Nodes, v.Nodes) {
		spec.Experimental = "" // the operator has confirmed the ids
	}
	spec.Products = slices.Clone(v.Products)
	for slot, ids := range own.PCI {
		i := slices.IndexFunc(spec.Products, func(p Product) bool { return p.Slot == slot && slot != "" })
		if i < 0 {
			return nil, fmt.Errorf("config_json: pci: slot %.80q does not exist", slot)
		}
		spec.Products[i].PCI = ids
	}
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("config_json: %w", err)
	}
	return &machine{Host: h, Spec: &spec}, nil
}

// machine is a host with such devices.
type machine struct {
	*driver.Host
	*Spec

	mu   sync.Mutex
	seen []string // addresses by index; a device that disappeared keeps its index
}
