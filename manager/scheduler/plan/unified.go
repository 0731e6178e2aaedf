package plan

import "github.com/berthhq/berth/internal/resource"

// The unified slots of a device are several names for the same capacity: an amount that is
// taken under one name reduces the others. A unit under one name is worth the same fraction of
// the capacity under another, so the used fractions under all names add up to at most one
// device. Usage under another name is rounded up to a unit of this one.

// unifiedLeft returns the free amount of a unified slot after the usage under all names.
func (c *cluster) unifiedLeft(d *device, s int) int64 {
	free := d.capacity[s] - d.used[s]
	for t, used := range d.used {
		if t != s && used > 0 && c.slots[t].unified {
			free -= resource.Part(used, d.capacity[t], d.capacity[s])
		}
	}
	return max(free, 0)
}
