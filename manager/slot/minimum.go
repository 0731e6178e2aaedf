package slot

import (
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
)

// minimumLabels are the prefixes of labels that name the least amount of a slot for one
// container: Berth's own, and the one of images that were built for Backend.AI.
var minimumLabels = []string{"berth.resource.min.", "ai.backend.resource.min."}

// Minimum returns the smallest amounts with which an image can run, by its labels. Anyone
// may have written these: a label that is not an amount of a slot is ignored.
func Minimum(i *ent.Image) resource.Slots {
	least := resource.Slots{}
	for key, text := range i.Labels {
		for p, prefix := range minimumLabels {
			name, ok := strings.CutPrefix(key, prefix)
			if _, own := i.Labels[minimumLabels[0]+name]; !ok || p > 0 && own || !resource.ValidName(name) {
				continue
			}
			if amount, err := resource.Parse(name, text); err == nil && amount > 0 {
				least[name] = amount
			}
		}
	}
	return least
}

// Fill gives a container that names no cpu or memory as much as its image asks for, where
// that is more than it would get.
func Fill(slots, asked, least resource.Slots) {
	for _, name := range []string{resource.CPU, resource.Mem} {
		if _, named := asked[name]; !named {
			slots[name] = max(slots[name], least[name])
		}
	}
}

// CheckMinimum refuses slots of a container that are below what its image asks for. The
// slots of one kind of accelerator (cuda.device, cuda.shares) stand for each other: the
// minimum of the one that is asked for counts.
func CheckMinimum(i *ent.Image, slots resource.Slots) error {
	least := Minimum(i)
	for _, name := range least.Names() {
		amount, named := slots[name]
		family, _, accelerator := strings.Cut(name, ".")
		if !named && accelerator && asks(slots, family) {
			continue
		}
		if amount < least[name] {
			return problem.Invalid("slots."+name, "%s is below the minimum of %s that image %s needs",
				resource.ForPeople(name, amount), resource.ForPeople(name, least[name]), i.Name).WithLimit(resource.Format(name, least[name]))
		}
	}
	return nil
}

// asks reports whether any slot of an accelerator is asked for.
func asks(slots resource.Slots, family string) bool {
	for name, amount := range slots {
		if strings.HasPrefix(name, family+".") && amount > 0 {
			return true
		}
	}
	return false
}
