package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rules are what slots say of devices that are given away in more than one way. The
// zero value has none.
type Rules struct {
	unified map[string]bool     // names of one amount
	apart   map[string][]string // patterns of those that are not beside a slot
}

// Add takes over what a slot's type says. In a pattern a * at the end stands for any
// ending.
func (r *Rules) Add(slot string, unified bool, exclusiveWith []string) {
	if r.unified == nil {
		r.unified, r.apart = map[string]bool{}, map[string][]string{}
	}
	r.unified[slot], r.apart[slot] = unified, exclusiveWith
}

// Against says why a device of that capacity cannot be used so; "" is that it can.
func (r *Rules) Against(used, capacity Slots) string {
	if more := exceeding(used, capacity, r.unified); len(more) > 0 {
		return fmt.Sprintf("%s of %s", more, capacity)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(used)), func(slot string) bool { return used[slot] == 0 })
	for i, a := range names {
		for _, b := range names[i+1:] {
			if Apart(r.apart[a], b) || Apart(r.apart[b], a) {
				return fmt.Sprintf("%s and %s, which exclude each other", a, b)
			}
		}
	}
	return ""
}

// Apart reports whether a slot that is exclusive with these is not beside another.
func Apart(exclusiveWith []string, other string) bool {
	return slices.ContainsFunc(exclusiveWith, func(pattern string) bool {
		prefix, star := strings.CutSuffix(pattern, "*")
		return pattern == other || star && strings.HasPrefix(other, prefix)
	})
}
