package driver

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	quantityForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(\D*)$`)
	quantities   = map[string]float64{
		"": 1, "b": 1, "bytes": 1, "c": 1, "°c": 1, "w": 1, "%": 1, "mhz": 1, "mw": 1e-3, "ghz": 1e3,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}
)

// Quantity parses values that programs print for people, such as "37C", "19.5 W", "15.7GiB" and 12,
// and converts them to a metric's unit: bytes, watt, celsius, percent or mhz.
func Quantity(text Loose) (float64, error) {
	found := quantityForm.FindStringSubmatch(strings.TrimSpace(string(text)))
	if found == nil {
		return 0, fmt.Errorf("%q is no quantity", Clean(string(text), 40))
	}
	scale, ok := quantities[strings.ToLower(strings.TrimSpace(found[2]))]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit", Clean(string(text), 40))
	}
	n, err := strconv.ParseFloat(found[1], 64)
	return n * scale, err
}
