package resource

import "math/bits"

// Part is the amount that is the same part of to as n is of from, rounded up, and
// to where n is all of it. Amounts are not negative, and from is above 0.
func Part(n, from, to int64) int64 {
	if n >= from {
		return to
	}
	hi, lo := bits.Mul64(uint64(n), uint64(to))
	lo, carry := bits.Add64(lo, uint64(from-1), 0)
	quotient, _ := bits.Div64(hi+carry, lo, uint64(from))
	return int64(quotient)
}

// exceeding is what of used is more than a device of that capacity has; empty when
// it all fits. Slots that are unified are names of one amount: what is used under
// them is too much when it is in whichever of them one counts.
func exceeding(used, capacity Slots, unified map[string]bool) Slots {
	more, names := Slots{}, Slots{}
	for slot, n := range used {
		if n > capacity[slot] {
			more[slot] = n
		}
		if unified[slot] && n > 0 {
			names[slot] = n
		}
	}
	if len(more) > 0 || len(names) < 2 {
		return more
	}
	for slot := range names {
		sum := int64(0)
		for other, n := range names {
			sum += Part(n, capacity[other], capacity[slot])
		}
		if sum <= capacity[slot] {
			return Slots{}
		}
	}
	return names
}
