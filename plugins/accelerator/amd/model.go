package main

import (
	"fmt"
	"slices"
)

// models are the supported Instinct GPUs by PCI device id.
var models = map[string]string{
	"7408": "AMD Instinct MI250X", "740c": "AMD Instinct MI250X / MI250",
	"74a0": "AMD Instinct MI300A",
	"74a1": "AMD Instinct MI300X", "74a9": "AMD Instinct MI300X HF", "74b5": "AMD Instinct MI300X VF", "74bd": "AMD Instinct MI300X HF VF",
	"74a2": "AMD Instinct MI308X", "74a8": "AMD Instinct MI308X HF", "74b6": "AMD Instinct MI308X VF", "74bc": "AMD Instinct MI308X HF VF",
	"74a5": "AMD Instinct MI325X", "74b9": "AMD Instinct MI325X VF",
	"75a0": "AMD Instinct MI350X", "75b0": "AMD Instinct MI350X VF",
	"75a3": "AMD Instinct MI355X", "75b3": "AMD Instinct MI355X VF",
}

// older are unsupported models that may be used beside newer ones.
var older = map[string]string{
	"740f": "AMD Instinct MI210", "738c": "AMD Instinct MI100", "738e": "AMD Instinct MI100",
	"66a1": "AMD Instinct MI50 / MI60", "66a0": "AMD Instinct MI50 / MI60", "6860": "AMD Instinct MI25",
}

// tooOld returns why a model is not allocatable, or "".
func (m *machine) tooOld(device string) string {
	switch {
	case models[device] != "" || slices.Contains(m.Additional, device):
		return ""
	case older[device] != "":
		return fmt.Sprintf("%s is older than the MI250X, the first model that is allocatable", older[device])
	case device == "":
		return "its PCI device id cannot be read"
	}
	return fmt.Sprintf("PCI device %s is not an Instinct GPU MI250X or newer", device)
}

// architecture converts KFD's gfx_target_version, with two decimal digits each for major, minor and
// stepping, to the name that compilers use: 90010 is gfx90a.
func architecture(version uint64) string {
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

// supported reports whether an architecture is that of the MI250X or newer.
func supported(version uint64) bool {
	return version == 90010 || version >= 90400 && version < 90600
}
