package plan

import "slices"

// Split is how a resource group gives an amount that is more than one device
// has, where parts of devices are given away at all. What one device has always
// comes from one device.
type Split string

// The ways to split.
const (
	SplitFill   Split = "fill"   // idle devices in full, and the rest from one more; the default
	SplitEvenly Split = "evenly" // the same from each of as few devices as have room for that
	SplitNone   Split = "none"   // idle devices in full, and never a rest
)

// takeEvenly takes a part, and its mate, in pieces that differ by one step of
// their slots at most.
func (c *cluster) takeEvenly(a int, st *step) bool {
	mark, most := len(c.taken), max(c.agents[a].most[st.slot], 1)
	for n := (st.amount + most - 1) / most; n <= int64(len(c.agents[a].devices)); n++ {
		pieces := inPieces(st.amount, n, c.slots[st.slot].quantum)
		if pieces[n-1] == 0 {
			return false
		}
		mates := make([]int64, n)
		if st.mate.amount > 0 {
			mates = inPieces(st.mate.amount, n, c.slots[st.mate.slot].quantum)
		}
		if c.takePieces(a, st, pieces, mates) {
			return true
		}
		c.rollback(mark)
	}
	return false
}

// inPieces divides an amount into n multiples of q, the largest first; what is
// no multiple goes to the first.
func inPieces(amount, n, q int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = amount / q / n * q
		if int64(i) < amount/q%n {
			out[i] += q
		}
	}
	out[0] += amount % q
	return out
}

// takePieces takes each from a device of its own, the one with the least left
// over. What has room for a piece has room for all that follow, so that a choice
// is never in the way of a later one.
func (c *cluster) takePieces(a int, st *step, pieces, mates []int64) bool {
	var taken []int
	for n, piece := range pieces {
		devices, pick, least := c.agents[a].devices, -1, int64(0)
		for i := range devices {
			free := c.available(&devices[i], st.slot)
			if free < piece || mates[n] > 0 && c.available(&devices[i], st.mate.slot) < mates[n] || slices.Contains(taken, i) {
				continue
			}
			if pick < 0 || free < least {
				pick, least = i, free
			}
		}
		if pick < 0 {
			return false
		}
		taken = append(taken, pick)
		c.takeBoth(a, pick, st, piece, &mates[n])
	}
	return true
}
