package plan

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// limits counts what the decisions of this pass add to the used amounts.
type limits map[limitKey][]*account

type limitKey struct {
	scope string
	id    uuid.UUID
}

type account struct {
	*Limit
	used     resource.Slots
	sessions int
}

func newLimits(list []Limit) limits {
	l := limits{}
	for i := range list {
		key := limitKey{list[i].Scope, list[i].ID}
		acc := &account{Limit: &list[i], used: list[i].Used.Clone(), sessions: list[i].Sessions}
		if acc.used == nil {
			acc.used = resource.Slots{}
		}
		l[key] = append(l[key], acc)
	}
	return l
}

// of lists the accounts a session is charged to, the nearest first.
func (l limits) of(r *Request) []*account {
	var list []*account
	list = append(list, l[limitKey{ScopeUser, r.Owner}]...)
	list = append(list, l[limitKey{ScopeProject, r.Project}]...)
	return append(list, l[limitKey{ScopeDomain, r.Domain}]...)
}

// reached lists every limit that the session would go over.
func (l limits) reached(r *Request, total resource.Slots) []report.LimitReached {
	var list []report.LimitReached
	for _, acc := range l.of(r) {
		if acc.MaxSessions != nil && acc.sessions >= *acc.MaxSessions {
			list = append(list, report.LimitReached{
				Scope: acc.Scope, Policy: acc.Policy, What: "sessions",
				Used: fmt.Sprint(acc.sessions), Requested: "1", Limit: fmt.Sprint(*acc.MaxSessions),
			})
		}
		for _, name := range acc.Total.Names() {
			// Asking for nothing is fine even where a limit was lowered below
			// what is used.
			if asked := total[name]; asked > 0 && asked > acc.Total[name]-acc.used[name] {
				list = append(list, report.LimitReached{
					Scope: acc.Scope, Policy: acc.Policy, What: name,
					Used: resource.Format(name, acc.used[name]), Requested: resource.Format(name, asked),
					Limit: resource.Format(name, acc.Total[name]),
				})
			}
		}
	}
	return list
}

func (l limits) charge(r *Request, total resource.Slots) {
	for _, acc := range l.of(r) {
		acc.used.Add(total)
		acc.sessions++
	}
}

func totalOf(r *Request) resource.Slots {
	total := resource.Slots{}
	for i := range r.Kernels {
		total.Add(r.Kernels[i].Slots)
	}
	return total
}
