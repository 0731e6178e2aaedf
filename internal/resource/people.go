package resource

import (
	"math"
	"strconv"
	"strings"
)

// FormatBytes formats a size for people: 512 B, 1.5 GiB.
func FormatBytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, i := float64(n)/1024, 0
	for math.Abs(f) >= 1023.95 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + units[i:i+1] + "iB"
}

// ForPeople formats an amount of a slot for people; Format is for programs.
func ForPeople(slot string, amount int64) string {
	if KindOf(slot) == Bytes {
		return FormatBytes(amount)
	}
	return Format(slot, amount)
}
