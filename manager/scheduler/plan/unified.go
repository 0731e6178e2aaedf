package plan

import "math/bits"

// The unified slots of a device are names of one amount: whoever takes a part of
// it under one name leaves that much less under the others. A unit under one is
// worth as much as the same part of the device's capacity under another, so the
// parts that are used under all of them add up to one device at most. What is
// used under another name is rounded up to a unit of this one.

// unifiedLeft is how much of a unified slot is left besides what is used under
// all names.
func (c *cluster) unifiedLeft(d *device, s int) int64 {
	free := d.capacity[s] - d.used[s]
	for t, used := range d.used {
		if t != s && used > 0 && c.slots[t].unified {
			free -= convert(used, d.capacity[s], d.capacity[t])
		}
	}
	return max(free, 0)
}

// convert is used*to/from, rounded up; all that there is where from has no room
// for it.
func convert(used, to, from int64) int64 {
	if used >= from {
		return to
	}
	hi, lo := bits.Mul64(uint64(used), uint64(to))
	lo, carry := bits.Add64(lo, uint64(from-1), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(from))
	return int64(n)
}
