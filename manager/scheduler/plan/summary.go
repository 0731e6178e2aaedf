package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// summary is one sentence for users that says what kernel k lacks, how much of it,
// and where. Users know agents as machines and kernels as containers.
func (q *queue) summary(w *reasons, shapes []*shape, k int) string {
	agents := len(shapes[k].profile.group.agents)
	if agents == 0 {
		return "The resource group has no machine."
	}
	container := ""
	if len(shapes) > 1 {
		container = fmt.Sprintf("container %d of %d", k+1, len(shapes))
	}
	if len(w.dropped) == 1 {
		if slot := q.shortOf(shapes[k], w.dropped[0]); slot >= 0 {
			return fmt.Sprintf("No machine has %s%s: the most that any machine has free is %s.",
				freeAmount(q.c.slots[slot].name, amountOf(shapes[k], slot)), placing(container, k),
				resource.ForPeople(q.c.slots[slot].name, w.most[slot]))
		}
	}
	parts := make([]string, len(w.dropped))
	for i, d := range w.dropped {
		parts[i] = q.clause(w, shapes[k], d, agents)
	}
	return fmt.Sprintf("No machine can run %s: %s.", cmp.Or(container, "the session"), strings.Join(parts, ", "))
}

// placing is the end of a phrase about the capacity that a container needs.
func placing(container string, k int) string {
	switch {
	case container == "":
		return ""
	case k == 0:
		return " for " + container
	}
	return " for " + container + " after the containers before it are placed"
}

// shortOf returns the slot of which agents have too little free, or -1 if the check
// that they do not pass is another one.
func (q *queue) shortOf(s *shape, d report.DroppedAgents) int {
	if d.Check != checkCPU && d.Check != checkMem && d.Check != checkTotal {
		return -1
	}
	i := slices.IndexFunc(s.needs, func(n need) bool { return q.c.slots[n.slot].name == d.Slot })
	if i < 0 {
		return -1
	}
	return s.needs[i].slot
}

// amountOf returns the amount of a slot that a kernel needs.
func amountOf(s *shape, slot int) int64 {
	return s.needs[slices.IndexFunc(s.needs, func(n need) bool { return n.slot == slot })].amount
}

// freeAmount writes an amount of a slot that must be free: 4 free CPU cores.
func freeAmount(slot string, amount int64) string { return amountText(slot, amount, "free ") }

// wholeAmount writes an amount of a slot: 4 CPU cores.
func wholeAmount(slot string, amount int64) string { return amountText(slot, amount, "") }

func amountText(slot string, amount int64, free string) string {
	switch text := resource.ForPeople(slot, amount); {
	case slot == resource.CPU && text == "1":
		return text + " " + free + "CPU core"
	case slot == resource.CPU:
		return text + " " + free + "CPU cores"
	case slot == resource.Mem:
		return text + " of " + free + "memory"
	default:
		return text + " " + free + slot
	}
}

// clause returns how many agents fail a check, and why: 3 are cordoned.
func (q *queue) clause(w *reasons, s *shape, d report.DroppedAgents, agents int) string {
	who := fmt.Sprint(d.Count)
	switch {
	case agents == 1:
		who = "the only one"
	case d.Count == agents:
		who = fmt.Sprintf("all %d", agents)
	}
	is, has, offers := "are", "have", "offer"
	if d.Count == 1 {
		is, has, offers = "is", "has", "offers"
	}
	why := ""
	if len(d.Why) > 0 {
		why = " (" + strings.Join(d.Why, "; ") + ")"
	}
	if slot := q.shortOf(s, d); slot >= 0 {
		return fmt.Sprintf("%s %s less than %s (at most %s)", who, has, freeAmount(d.Slot, amountOf(s, slot)),
			resource.ForPeople(d.Slot, w.most[slot]))
	}
	switch d.Check {
	case checkAsked:
		return who + " " + is + " not among the requested machines"
	case checkCordoned, checkDraining:
		return who + " " + is + " " + d.Check + why
	case checkLost:
		return who + " " + is + " unreachable" + why
	case checkUnfit:
		return who + " " + has + " a condition that keeps new sessions away" + why
	case checkArchitecture:
		return who + " " + has + " another processor architecture"
	case checkVolume:
		return who + " " + has + " no access to a volume that the session mounts"
	case checkNetwork:
		return who + " " + has + " room for some of the containers, but no network between them and the others" + why
	case checkTogether:
		return who + " " + is + " excluded by the session group"
	case checkMissing:
		return who + " " + has + " no " + d.Slot
	case checkCounts:
		return who + " " + offers + " " + d.Slot + " in other amounts only"
	case checkCounters:
		return who + " " + has + " free " + d.Slot + " only on hardware that others use"
	case checkTopology:
		return who + " " + has + " enough free " + d.Slot + ", but too far from each other"
	case checkContiguity:
		return who + " " + has + " enough free " + d.Slot + " in total, but not on one device"
	case checkReserved:
		return who + " " + is + " reserved for an earlier session"
	}
	return who + " " + has + " too little free " + d.Slot
}

// limitSummary is one sentence about the limits that keep a request waiting.
func limitSummary(reached []report.LimitReached) string {
	s := reached[0].String()
	s = strings.ToUpper(s[:1]) + s[1:]
	if more := len(reached) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more limits)", more)
	}
	return s + "."
}
