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
