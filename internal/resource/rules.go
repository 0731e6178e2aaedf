package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rules are the rules of slots for devices that can be allocated in more than one way. The zero
// value has none.
type Rules struct {
	unified map[string]bool     // names of one amount
	apart   map[string][]string // patterns of slots that exclude a slot
}

// Add adds the rules of a slot's type. In a pattern, a * at the end matches any suffix.
func (r *Rules) Add(slot string, unified bool, exclusiveWith []string) {
	if r.unified == nil {
		r.unified, r.apart = map[string]bool{}, map[string][]string{}
	}
	r.unified[slot], r.apart[slot] = unified, exclusiveWith
}

// Against returns the reason why a device of that capacity cannot have this usage, or "".
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

// Apart reports whether a slot with these exclusions cannot be used together with another slot.
func Apart(exclusiveWith []string, other string) bool {
	return slices.ContainsFunc(exclusiveWith, func(pattern string) bool {
		prefix, star := strings.CutSuffix(pattern, "*")
		return pattern == other || star && strings.HasPrefix(other, prefix)
	})
}
