package plan

import "github.com/berthhq/berth/internal/resource"

// The unified slots of a device are names of one amount: anyone who takes a part of
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
			free -= resource.Part(used, d.capacity[t], d.capacity[s])
		}
	}
	return max(free, 0)
}
