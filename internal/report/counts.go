package report

import (
	"slices"
	"strconv"
	"strings"
)

// Counts are the only amounts of slots that one kernel can have on an agent, in ascending order. A
// slot without an entry can have any amount.
type Counts map[string][]int

// Allow reports whether a kernel can have an amount of a slot.
func (c Counts) Allow(slot string, amount int64) bool {
	counts, some := c[slot]
	return !some || slices.ContainsFunc(counts, func(n int) bool { return int64(n) == amount })
}

// ListCounts formats amounts for people: 1, 4 or 8.
func ListCounts(counts []int) string {
	words := make([]string, len(counts))
	for i, n := range counts {
		words[i] = strconv.Itoa(n)
	}
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
