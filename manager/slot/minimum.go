package slot

import (
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
)

// minimumLabels are the prefixes of image labels for the minimum of a slot per container:
// Berth's own, and that of images for Backend.AI.
var minimumLabels = []string{"berth.resource.min.", "ai.backend.resource.min."}

// Minimum returns the minimum amounts of an image from its labels. Labels can have any
// content, so a label that is not an amount of a slot is ignored.
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

// Fill raises the default cpu and memory of a container to the minimum of its image.
func Fill(slots, asked, least resource.Slots) {
	for _, name := range []string{resource.CPU, resource.Mem} {
		if _, named := asked[name]; !named {
			slots[name] = max(slots[name], least[name])
		}
	}
}

// CheckMinimum returns an error if a requested slot of a container is below the minimum of its
// image. The slots of one kind of accelerator (cuda.device, cuda.shares) are alternatives:
// only the minimum of the requested one counts.
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

// asks reports whether a slot of an accelerator family is requested.
func asks(slots resource.Slots, family string) bool {
	for name, amount := range slots {
		if strings.HasPrefix(name, family+".") && amount > 0 {
			return true
		}
	}
	return false
}
