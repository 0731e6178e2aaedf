package declarative

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// values has the values that the program printed for one device, by path or group.
type values map[string]string

// report has the values of all devices, by the names that the program uses.
type report map[string]values

// ask runs the program. Without a program it returns nothing.
func (m *machine) ask(ctx context.Context) (report, error) {
	p := m.Program
	if p == nil {
		return nil, nil
	}
	out, err := m.Ask(ctx, p.Run[0], p.Run[1:]...)
	if err != nil {
		return nil, err
	}
	var list []values
	if p.Format == "lines" {
		list = p.lines(string(out))
	} else if list, err = p.json(out); err != nil {
		return nil, err
	}
	r := report{}
	for i, one := range list {
		name := driver.Clean(one[p.Match], 64)
		if p.By == "pci" {
			name = driver.Address(name)
		}
		if r[name] != nil {
			return nil, fmt.Errorf("%s lists %q twice", p.Run[0], name)
		}
		if name == "" {
			return nil, fmt.Errorf("%s: entry %d has no %s", p.Run[0], i, p.Match)
		}
		r[name] = one
	}
	return r, nil
}

func (p *Program) lines(text string) []values {
	var out []values
	for line := range strings.Lines(text) {
		found := p.line.FindStringSubmatch(line)
		if found == nil {
			continue // headings
		}
		one := values{}
		for i, name := range p.line.SubexpNames() {
			if name != "" {
				one[name] = strings.TrimSpace(found[i])
			}
		}
		out = append(out, one)
	}
	return out
}

func (p *Program) json(raw []byte) ([]values, error) {
	var all any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s does not print JSON: %s", p.Run[0], driver.Clean(err.Error(), 100))
	}
	for _, elem := range strings.FieldsFunc(p.List, func(r rune) bool { return r == '.' }) {
		object, ok := all.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s prints no %s", p.Run[0], p.List)
		}
		all = object[elem]
	}
	list, ok := all.([]any)
	if !ok {
		return nil, fmt.Errorf("%s prints no list at %q", p.Run[0], p.List)
	}
	var out []values
	for _, entry := range list {
		one := values{}
		flatten(one, "", entry, 0)
		out = append(out, one)
	}
	return out, nil
}

// flatten stores nested values under paths with dots.
func flatten(to values, path string, v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		if depth > 8 {
			return
		}
		for name, x := range v {
			flatten(to, strings.TrimPrefix(path+"."+name, "."), x, depth+1)
		}
	case string:
		to[path] = v
	case float64:
		to[path] = strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		to[path] = strconv.FormatBool(v)
	}
}

func (s values) text(p *Program, field string) string {
	f, ok := p.Fields[field]
	if !ok {
		return ""
	}
	return driver.Clean(s[f.From], 100)
}

var errNotReported = errors.New("the program does not report it")

// number parses a value and ignores its unit.
func (s values) number(p *Program, field string) (float64, error) {
	f, ok := p.Fields[field]
	text := s[f.From]
	if !ok || text == "" {
		return 0, errNotReported
	}
	digits := strings.TrimRightFunc(strings.TrimSpace(text), func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%s is %q, not a number", field, driver.Clean(text, 40))
	}
	if f.Scale != 0 {
		n *= f.Scale
	}
	return n, nil
}
