package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Slots is an amount per slot name. A missing name means an amount of zero; in a limit, it means no
// limit. The JSON form is an object of decimal strings.
type Slots map[string]int64

// ParseSlots parses decimal texts. The error lists every invalid one.
func ParseSlots(m map[string]string) (Slots, error) {
	s := make(Slots, len(m))
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !ValidName(name) {
			bad = append(bad, fmt.Sprintf("%.40q is not a slot name", name))
			continue
		}
		amount, err := Parse(name, m[name])
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		s[name] = amount
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(bad, "; "))
	}
	return s, nil
}

// Strings is the inverse of ParseSlots.
func (s Slots) Strings() map[string]string {
	m := make(map[string]string, len(s))
	for name, amount := range s {
		m[name] = Format(name, amount)
	}
	return m
}

// Names returns the slot names in order.
func (s Slots) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Clone returns a copy that shares nothing.
func (s Slots) Clone() Slots { return maps.Clone(s) }

// Add adds other into s.
func (s Slots) Add(other Slots) {
	for name, amount := range other {
		s[name] += amount
	}
}

// Sub subtracts other from s.
func (s Slots) Sub(other Slots) {
	for name, amount := range other {
		s[name] -= amount
	}
}

// String formats the slots for people, in order: cpu 1, mem 1073741824.
func (s Slots) String() string {
	parts := make([]string, 0, len(s))
	for _, name := range s.Names() {
		parts = append(parts, name+" "+Format(name, s[name]))
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes an object of decimal strings.
func (s Slots) MarshalJSON() ([]byte, error) { return json.Marshal(s.Strings()) }

// UnmarshalJSON reads an object of decimal strings or plain numbers.
func (s *Slots) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("slots: %w", err)
	}
	m := make(map[string]string, len(raw))
	for name, v := range raw {
		m[name] = strings.Trim(string(v), `"`)
	}
	parsed, err := ParseSlots(m)
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
