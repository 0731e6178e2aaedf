package main

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// reading is the output of tsp-ctl for a card. The output is made for people and differs between
// versions, so unknown parts are ignored.
type reading struct {
	status      string
	locked      *bool
	temperature *float64
	power       *float64
}

// report has the output by tsp-ctl's name of a card: its number or its PCI address.
type report map[string]*reading

var (
	colour = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	naming = regexp.MustCompile(`(?i)\bgroqA?([0-9]{1,3})\b|\b(?:card|device|tsp|chip)\s*#?([0-9]{1,3})\b|((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b|^\s*\[?([0-9]{1,3})\]?(?:\s|\||:\s)`)

	statusForm      = regexp.MustCompile(`(?i)\b(?:status|state)\s*[:=|]\s*([a-z]+)|\b(up|down)\b`)
	lockedForm      = regexp.MustCompile(`(?i)\b(un)?locked\b(?:\s*[:=|]\s*(true|yes|1|false|no|0)\b)?`)
	temperatureForm = regexp.MustCompile(`(?i)\btemp[a-z]*\b[^0-9\n-]{0,24}(-?[0-9]+(?:\.[0-9]+)?)|(-?[0-9]+(?:\.[0-9]+)?)\s*(?:°\s*|deg(?:rees)?\s*)?C\b`)
	powerForm       = regexp.MustCompile(`(?i)\bpower\b[^0-9\n-]{0,24}([0-9]+(?:\.[0-9]+)?)|([0-9]+(?:\.[0-9]+)?)\s*W(?:atts?)?\b`)
)

// ask runs tsp-ctl.
func (m *machine) ask(ctx context.Context, verb string) (report, error) {
	out, err := m.Ask(ctx, "tsp-ctl", verb)
	if err != nil {
		return nil, err
	}
	return read(string(out)), nil
}

// read parses the text: lines after a card's name belong to that card.
func read(text string) report {
	r := report{}
	var now *reading
	for line := range strings.Lines(colour.ReplaceAllString(text, "")) {
		if at := naming.FindStringSubmatchIndex(line); at != nil {
			name := group(naming.FindStringSubmatch(line))
			if n, err := strconv.Atoi(name); err == nil {
				name = strconv.Itoa(n)
			} else {
				name = driver.Address(name)
			}
			if r[name] == nil {
				r[name] = &reading{}
			}
			now, line = r[name], line[at[1]:]
		}
		if now != nil {
			now.note(line)
		}
	}
	return r
}

// note parses a line and stores values that are not set yet.
func (s *reading) note(line string) {
	if v := group(statusForm.FindStringSubmatch(line)); v != "" && s.status == "" {
		s.status = strings.ToLower(v)
	}
	if found := lockedForm.FindStringSubmatch(line); found != nil && s.locked == nil {
		locked := (found[1] == "") == !slices.Contains([]string{"false", "no", "0"}, strings.ToLower(found[2]))
		s.locked = &locked
	}
	for form, to := range map[*regexp.Regexp]**float64{temperatureForm: &s.temperature, powerForm: &s.power} {
		if v, err := strconv.ParseFloat(group(form.FindStringSubmatch(line)), 64); err == nil && *to == nil {
			*to = &v
		}
	}
}

// group returns the first group that matched.
func group(found []string) string {
	for _, g := range found[min(1, len(found)):] {
		if g != "" {
			return g
		}
	}
	return ""
}

// of returns the output for a card.
func (r report) of(c card) *reading {
	if s := r[c.Address]; s != nil {
		return s
	}
	if s := r[strconv.Itoa(c.number)]; s != nil && c.node != "" {
		return s
	}
	return &reading{}
}

// bad are the states in which a card cannot work.
var bad = []string{"down", "error", "failed", "failure", "fault", "faulty", "offline", "dead", "hung"}

// judge sets a device's health from tsp-ctl and the kernel's sensors. If tsp-ctl does not respond,
// the card stays healthy, because the sensors still monitor it.
func (m *machine) judge(d *pb.Device, c card, said report, silence error) {
	unhealthy := func(format string, args ...any) {
		d.Health = pb.Health_HEALTH_UNHEALTHY
		driver.Reject(d, format, args...)
		d.HealthMessage = d.RejectReasons[len(d.RejectReasons)-1]
	}
	if silence == nil {
		status := said.of(c).status
		if status != "" {
			d.Attributes["status"] = status
		}
		if slices.Contains(bad, status) {
			unhealthy("tsp-ctl reports the state %s", status)
		}
	}
	if hot, limit, err := driver.Sensor(c.Dir, "temp"); err == nil && limit > 0 && hot >= limit {
		unhealthy("%.0f °C, of at most %.0f", hot, limit)
	}
}
