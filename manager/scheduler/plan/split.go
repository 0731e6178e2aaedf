package plan

import "slices"

// Split configures how a resource group provides an amount that exceeds one device, for slots
// that are parts of devices. A smaller amount always comes from one device.
type Split string

// The ways to split.
const (
	SplitFill   Split = "fill"   // whole idle devices, and the rest from one more; the default
	SplitEvenly Split = "evenly" // equal amounts from as few devices as possible
	SplitNone   Split = "none"   // whole idle devices only
)

// takeEvenly takes a part, and its mate, in pieces that differ by at most one step of their
// slots.
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

// inPieces divides an amount into n multiples of q, the largest first; the remainder goes to
// the first.
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

// takePieces takes each piece from a device of its own, the one with the least left over. A
// device with room for a piece has room for all later ones, so an earlier choice never
// prevents a later one.
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
