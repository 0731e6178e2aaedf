package policy

import (
	"fmt"
	"math"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Ask is a requested session, or several with the same request.
type Ask struct {
	Sessions   int            // 0: 1
	Slots      resource.Slots // of all its containers
	Containers int
	Priority   int
	Disk       int64 // bytes of each container; 0: unchanged
}

// Refuses returns the reasons why a session cannot even wait under the limit: amounts above
// the limit, and the limit of pending sessions.
func (l *Limit) Refuses(ask Ask, used Used) (list []report.LimitReached) {
	count := func(what string, used, asked int, most *int) {
		if most != nil && asked > *most-used {
			list = append(list, l.Reached(what, fmt.Sprint(used), fmt.Sprint(asked), fmt.Sprint(*most)))
		}
	}
	for _, name := range ask.Slots.Names() {
		if most, ok := l.Slot(name); ok && ask.Slots[name] > most {
			list = append(list, l.Reached(name, resource.Format(name, used.Slots[name]), resource.Format(name, ask.Slots[name]), resource.Format(name, most)))
		}
	}
	if l.MaxSessions != nil && *l.MaxSessions == 0 {
		count("sessions", used.Sessions, 1, l.MaxSessions)
	}
	count("containers per session", 0, ask.Containers, l.MaxContainersPerSession)
	count("priority", 0, ask.Priority, l.MaxPriority)
	if most := l.MaxDiskBytes; most != nil && ask.Disk > *most {
		list = append(list, l.Reached(DiskBytes, "0", fmt.Sprint(ask.Disk), fmt.Sprint(*most)))
	}
	sessions := max(ask.Sessions, 1)
	count("pending sessions", used.Pending, sessions, l.MaxPendingSessions)
	all := func(name string) int64 { return times(ask.Slots[name], sessions) }
	for _, name := range ask.Slots.Names() {
		if most, ok := l.PendingSlots[name]; ok && all(name) > most-used.PendingSlots[name] {
			list = append(list, l.Reached("pending "+name, resource.Format(name, used.PendingSlots[name]),
				resource.Format(name, all(name)), resource.Format(name, most)))
		}
	}
	return list
}

// times multiplies an amount, at most up to the largest number.
func times(amount int64, n int) int64 {
	if amount > math.MaxInt64/int64(n) {
		return math.MaxInt64
	}
	return amount * int64(n)
}

// Reached returns the limit in the form of reports.
func (l *Limit) Reached(what, used, asked, most string) report.LimitReached {
	return report.LimitReached{
		Scope: string(l.Scope), Holder: l.Holder, ResourceGroup: l.GroupName, WithinProject: l.WithinName,
		Policy: l.Policy, What: what, Used: used, Requested: asked, Limit: most,
	}
}
