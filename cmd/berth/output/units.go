package output

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Bytes prints a size for people: 512 B, 1.5 GiB.
func Bytes(n int64) string { return resource.FormatBytes(n) }

// Slots prints amounts for people: cpu 1, mem 1 GiB.
func Slots(s map[string]string) string {
	parts := make([]string, 0, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, name+" "+amount(name, s))
	}
	return strings.Join(parts, ", ")
}

// amount prints an amount that the server sent; a missing one is 0.
func amount(slot string, of map[string]string) string {
	n, err := resource.Parse(slot, cmp.Or(of[slot], "0"))
	if err != nil {
		return of[slot]
	}
	return Amount(slot, n)
}

// Amount prints an amount of a slot for people.
func Amount(slot string, amount int64) string { return resource.ForPeople(slot, amount) }

// Used prints the allocated part of the capacity: cpu 1/4.
func Used(occupied, capacity map[string]string) string {
	parts := make([]string, 0, len(capacity))
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		parts = append(parts, fmt.Sprintf("%s %s/%s", name, amount(name, occupied), amount(name, capacity)))
	}
	return strings.Join(parts, ", ")
}

// Age prints how long ago t was, in one unit or two.
func Age(now, t time.Time) string { return Duration(now.Sub(t)) }

// Duration prints a duration for people: 45s, 3m12s, 2h5m, 3d4h.
func Duration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch s := int64(d / time.Second); {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%dh", s/86400, s%86400/3600)
	}
}

// SlotHours converts slot-seconds to hours; bytes become GiB.
func SlotHours(slot, slotSeconds string) (hours, unit string) {
	f, err := strconv.ParseFloat(slotSeconds, 64)
	if err != nil {
		return slotSeconds, "slot-seconds"
	}
	f /= 3600
	unit = slot + "-hours"
	if resource.KindOf(slot) == resource.Bytes {
		f /= 1 << 30
		unit = slot + " GiB-hours"
	}
	return strconv.FormatFloat(f, 'f', 4, 64), unit
}
