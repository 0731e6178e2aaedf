package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// ipu is the output of gc-inventory for one IPU: names such as "board type", and values with units.
type ipu map[string]driver.Scalar

func (i ipu) text(name string) string {
	v := driver.Clean(string(i[name]), 100)
	if strings.EqualFold(v, "n/a") {
		return ""
	}
	return v
}

var errNotReported = errors.New("gc-inventory does not report it")

func (i ipu) number(name string) (float64, error) {
	if i.text(name) == "" {
		return 0, errNotReported
	}
	return driver.Quantity(i[name])
}

// whole returns a number without its unit, or -1 if there is none.
func (i ipu) whole(name string) int {
	n, err := strconv.Atoi(i.text(name))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// fabric reports whether the IPU is reached over the network.
func (i ipu) fabric() bool { return strings.EqualFold(i.text("target"), "fabric") }

// inventory returns the IPUs in the order of their numbers.
func (m *machine) inventory(ctx context.Context) ([]ipu, error) {
	var all struct {
		Devices []ipu `json:"devices"`
	}
	if err := m.AskJSON(ctx, &all, "gc-inventory", "-2"); err != nil {
		return nil, err
	}
	if n := len(all.Devices); n > accelerator.MaxDevices {
		return nil, fmt.Errorf("gc-inventory lists %d devices, at most %d are possible", n, accelerator.MaxDevices)
	}
	for n, one := range all.Devices {
		if one == nil {
			return nil, fmt.Errorf("gc-inventory: device %d is empty", n)
		}
	}
	slices.SortStableFunc(all.Devices, func(a, b ipu) int { return cmp.Compare(a.whole("id"), b.whole("id")) })
	return all.Devices, nil
}

// hosts returns the addresses of the IPU-Machines by the number of an IPU.
func (m *machine) hosts(ctx context.Context) (map[int]string, error) {
	var all struct {
		Cards []struct {
			Host driver.Scalar `json:"IPU-M"`
			IPUs []struct {
				ID driver.Scalar `json:"ID"`
			} `json:"ipus"`
		} `json:"cards"`
	}
	if err := m.AskJSON(ctx, &all, "gc-monitor", "-j"); err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, card := range all.Cards {
		for _, one := range card.IPUs {
			if id, err := strconv.Atoi(string(one.ID)); err == nil && card.Host != "" {
				out[id] = string(card.Host)
			}
		}
	}
	return out, nil
}
