package plan

import (
	"cmp"
	"slices"

	"github.com/berthhq/berth/internal/resource"
)

// less suggests the largest amount of one slot with which the request starts, with all else
// unchanged, or smaller amounts of several slots if that is necessary.
func (f *finder) less() (list []Suggestion) {
	slots := f.r.Kernels[0].Slots
	for _, k := range f.r.Kernels[1:] {
		if !slices.Equal(k.Slots.Names(), slots.Names()) || k.Slots.String() != slots.String() {
			return nil // the kernel to reduce is the user's choice
		}
	}
	for _, name := range slots.Names() {
		steps := f.amounts(name, slots[name])
		if len(steps) == 0 || !f.fits(f.with(slots, name, steps[len(steps)-1])) {
			continue
		}
		for _, amount := range steps {
			r := f.with(slots, name, amount)
			if x := (Suggestion{Slots: r.Kernels[0].Slots}); f.fits(r) && f.verified(x) {
				list = append(list, x)
				break
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	return f.fewer(slots)
}

// fewer reduces every slot to the amount that the nearest agent could provide.
func (f *finder) fewer(slots resource.Slots) []Suggestion {
	g := f.q.groups[f.r.Group]
	s := f.q.shapesOf(g, f.r)[0]
	best, least := resource.Slots(nil), 0.0
	for _, i := range s.profile.agents {
		a := &f.q.c.agents[i]
		if a.held {
			continue
		}
		offer, lacks := slots.Clone(), 0.0
		for _, n := range s.needs {
			l := lack(n, a.reach(f.q.c, n))
			if l == 0 {
				continue
			}
			lacks += l
			name := f.q.c.slots[n.slot].name
			steps := f.amounts(name, n.amount)
			k := slices.IndexFunc(steps, func(amount int64) bool {
				return amount <= a.free[n.slot] && a.reach(f.q.c, need{slot: n.slot, amount: amount}) >= amount
			})
			if k < 0 {
				offer = nil
				break
			}
			offer[name] = steps[k]
		}
		if offer != nil && lacks > 0 && (best == nil || lacks < least) {
			if r := f.with(offer, "", 0); f.fits(r) {
				best, least = offer, lacks
			}
		}
	}
	if x := (Suggestion{Slots: best}); best != nil && f.verified(x) {
		return []Suggestion{x}
	}
	return nil
}

// with returns the request with another amount of a slot for each kernel.
func (f *finder) with(slots resource.Slots, name string, amount int64) *Request {
	r := *f.r
	slots = slots.Clone()
	if name != "" {
		slots[name] = amount
	}
	x := Suggestion{Slots: slots}
	x.change(&r)
	return &r
}

// maxSteps is the number of smaller amounts that are tried.
const maxSteps = 24

// amounts returns amounts below the requested one, the largest first, in steps that a user
// would choose: about a sixteenth of it, rounded to 1, 2 or 5 times a power of ten, or to a
// power of two of bytes, and whole numbers from four on; and quarters of it.
func (f *finder) amounts(name string, asked int64) (list []int64) {
	quantum := int64(1)
	if n, known := f.q.c.number[name]; known {
		quantum = max(1, f.q.c.slots[n].quantum)
	}
	step := decimalStep(asked)
	if one, err := resource.Parse(name, "1"); err == nil && asked >= 4*one {
		step = max(step, one)
	}
	if resource.KindOf(name) == resource.Bytes {
		step = binaryStep(asked)
	}
	step = max(quantum, step/quantum*quantum)
	for amount := (asked - 1) / step * step; amount > 0 && len(list) < maxSteps; amount -= step {
		list = append(list, amount)
	}
	for quarters := range int64(3) {
		if amount := asked * (quarters + 1) / 4 / quantum * quantum; amount > 0 && step <= asked/4 {
			list = append(list, amount)
		}
	}
	slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
	list = slices.Compact(list)
	list = halved(list, asked, quantum)
	return slices.DeleteFunc(list, func(amount int64) bool { return amount < f.least[name] })
}

// halved appends repeated halves down to the quantum.
func halved(list []int64, asked, quantum int64) []int64 {
	for last := asked; ; {
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		half := last / 2 / quantum * quantum
		if half <= 0 || half == last || len(list) >= 2*maxSteps {
			return list
		}
		list = append(list, half)
	}
}

func decimalStep(asked int64) int64 {
	step := int64(1)
	for _, next := range []int64{2, 5, 10} {
		for unit := int64(1); unit*next <= asked/16; unit *= 10 {
			step = max(step, unit*next)
		}
	}
	return step
}

func binaryStep(asked int64) int64 {
	step := int64(1)
	for step*2 <= asked/16 {
		step *= 2
	}
	return step
}
