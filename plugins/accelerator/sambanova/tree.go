package main

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// rdu is an RDU in the output of snconfig.
type rdu struct {
	xrdu, number int
	serial       string
	memory       uint64
	state        string // "" = not reported
	tiles        map[int]string
}

// system has a host's RDUs in the order of their numbers.
type system struct {
	platform string
	rdus     []*rdu
}

func (s *system) rdu(xrdu, number int) *rdu {
	for _, r := range s.rdus {
		if r.xrdu == xrdu && r.number == number {
			return r
		}
	}
	r := &rdu{xrdu: xrdu, number: number, tiles: map[int]string{}}
	if len(s.rdus) < accelerator.MaxDevices { // further ones are ignored
		s.rdus = append(s.rdus, r)
	}
	return r
}

var nameForm = regexp.MustCompile(`^(?:XRDU|RDU|TILE)_([0-9]{1,3})$`)

// numbered returns the number in a name such as RDU_3, or -1.
func numbered(name string) int {
	found := nameForm.FindStringSubmatch(name)
	if found == nil {
		return -1
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// read parses the output of snconfig: indented lines "name: value" below the headings of XRDUs,
// RDUs, tiles and other parts.
func (s *system) read(text string) {
	xrdu, tile, below := -1, -1, false
	var now *rdu
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = driver.Clean(value, 100)
		switch name = strings.ToLower(driver.Clean(name, 40)); name {
		case "platform name":
			s.platform = value
		case "xrdu name":
			xrdu, now = numbered(value), nil
		case "rdu name":
			tile, below, now = -1, false, nil
			if n := numbered(value); n >= 0 && xrdu >= 0 {
				now = s.rdu(xrdu, n)
			}
		case "tile name":
			tile, below = numbered(value), false
			if now != nil && tile >= 0 {
				now.tiles[tile] = ""
			}
		case "pcie name", "ddr ch name", "dimm name", "hbm name":
			tile, below = -1, true
		default:
			if now != nil {
				now.note(name, value, tile, below)
			}
		}
	}
}

// note stores a value of an RDU, its tile, or its memory, which is below it.
func (r *rdu) note(name, value string, tile int, below bool) {
	switch {
	case name == "size" && below:
		if n, err := driver.Quantity(driver.Scalar(strings.Replace(value, "GB", "GiB", 1))); err == nil && n < 1<<50 { // the sizes of memory are powers of two
			r.memory += uint64(n)
		}
	case below:
	case name == "serial number" && tile < 0 && !strings.EqualFold(value, "n/a"):
		r.serial = value
	case (name == "state" || name == "status") && tile >= 0:
		r.tiles[tile] = strings.ToLower(value)
	case name == "state" || name == "status":
		r.state = strings.ToLower(value)
	}
}

// update sets the states of known devices from the current output of snconfig.
func (s *system) update(text string) {
	now := &system{}
	now.read(text)
	for _, r := range s.rdus {
		answer := now.rdu(r.xrdu, r.number)
		r.state = answer.state
		for n := range r.tiles {
			r.tiles[n] = answer.tiles[n]
		}
	}
}

// system reads the machine's devices. It returns nil without the vendor's programs.
func (m *machine) system(ctx context.Context) (*system, error) {
	s := &system{}
	static, err := m.Ask(ctx, "snconfig", "show", "Node", "static")
	switch {
	case errors.Is(err, driver.ErrNoProgram): // sntilestat also lists all tiles
		rows, err := m.tilestat(ctx)
		if errors.Is(err, driver.ErrNoProgram) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for at := range rows {
			s.rdu(at.xrdu, at.rdu).tiles[at.tile] = ""
		}
	case err != nil:
		return nil, err
	default:
		s.read(string(static))
		dynamic, err := m.Ask(ctx, "snconfig", "show", "Node", "dynamic")
		if err != nil {
			return nil, err // their states are unknown
		}
		s.update(string(dynamic))
	}
	slices.SortFunc(s.rdus, func(a, b *rdu) int { return cmp.Or(cmp.Compare(a.xrdu, b.xrdu), cmp.Compare(a.number, b.number)) })
	if answer, err := m.platform(ctx); err == nil && answer != "" {
		s.platform = answer
	}
	return s, nil
}
