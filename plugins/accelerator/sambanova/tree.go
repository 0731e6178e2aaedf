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

// rdu is one as snconfig prints it.
type rdu struct {
	xrdu, number int
	serial       string
	memory       uint64
	state        string // "" = nothing is told
	tiles        map[int]string
}

// system is a host's RDUs in the order of their numbers.
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
	if len(s.rdus) < accelerator.MaxDevices { // more are not shown
		s.rdus = append(s.rdus, r)
	}
	return r
}

var nameForm = regexp.MustCompile(`^(?:XRDU|RDU|TILE)_([0-9]{1,3})$`)

// numbered is the number in RDU_3, -1 when there is none.
func numbered(name string) int {
	found := nameForm.FindStringSubmatch(name)
	if found == nil {
		return -1
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// read takes what snconfig prints: indented lines of "name: value" below the
// headings of XRDUs, RDUs, tiles and other parts.
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

// note keeps what is said of an RDU, its tile, or its memory, which is below it.
func (r *rdu) note(name, value string, tile int, below bool) {
	switch {
	case name == "size" && below:
		if n, err := driver.Quantity(driver.Loose(strings.Replace(value, "GB", "GiB", 1))); err == nil && n < 1<<50 { // memory is sold in powers of two
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

// update takes states of what is known from what snconfig says of the moment.
func (s *system) update(text string) {
	now := &system{}
	now.read(text)
	for _, r := range s.rdus {
		told := now.rdu(r.xrdu, r.number)
		r.state = told.state
		for n := range r.tiles {
			r.tiles[n] = told.tiles[n]
		}
	}
}

// system looks at the machine: nil without the vendor's programs.
func (m *machine) system(ctx context.Context) (*system, error) {
	s := &system{}
	static, err := m.Ask(ctx, "snconfig", "show", "Node", "static")
	switch {
	case errors.Is(err, driver.ErrNoProgram): // sntilestat lists all tiles, too
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
			return nil, err // no one knows how they are
		}
		s.update(string(dynamic))
	}
	slices.SortFunc(s.rdus, func(a, b *rdu) int { return cmp.Or(cmp.Compare(a.xrdu, b.xrdu), cmp.Compare(a.number, b.number)) })
	if told, err := m.platform(ctx); err == nil && told != "" {
		s.platform = told
	}
	return s, nil
}
