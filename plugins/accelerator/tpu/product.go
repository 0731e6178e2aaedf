package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

// product is a generation, with data that cannot be read from the hardware.
type product struct {
	model  string
	memory uint64
	cores  int    // devices of the runtime in a chip
	kind   string // of TPU_ACCELERATOR_TYPE
	units  int    // units of the kind in a chip
	deep   bool   // the chips of a machine form a box instead of a sheet
}

const gib = 1 << 30

// products by PCI device id.
var products = map[string]product{
	"005e": {"TPU v4", 32 * gib, 1, "v4", 2, true},
	"0063": {"TPU v5e", 16 * gib, 1, "v5litepod", 1, false},
	"0062": {"TPU v5p", 95 * gib, 1, "v5p", 2, true},
	"006f": {"TPU v6e", 32 * gib, 1, "v6e", 1, false},
	"0076": {"TPU7x", 192 * gib, 2, "tpu7x", 2, true},
}

// identify returns the product of a PCI function. The vendor's network cards and disks are not
// TPUs.
func identify(p driver.PCI) (what product, known, tpu bool) {
	if what, known = products[p.Device]; known {
		return what, true, true
	}
	if p.Device == "0027" { // v2 and v3 differ in the subsystem id
		return product{model: map[string]string{"004e": "TPU v2", "004f": "TPU v3"}[p.SubName]}, false, true
	}
	return product{}, false, len(p.Class) == 6 && p.Class[:2] == "12"
}

// shape returns the arrangement of a machine's chips.
func (p product) shape(chips int) string {
	flat := map[int]string{1: "1x1", 2: "1x2", 4: "2x2", 8: "2x4"}[chips]
	if flat != "" && p.deep {
		return flat + "x1"
	}
	return flat
}
