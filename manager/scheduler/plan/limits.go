package plan

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// Ledger adds the decisions of a pass to the usage of limits.
type Ledger map[limitKey][]*account

// limitKey identifies the owner of the counted sessions; for a keypair, its user.
type limitKey struct {
	scope string
	id    uuid.UUID
}

type account struct {
	*Limit
	used     resource.Slots
	sessions int
}

// NewLedger returns a Ledger with the current usage.
func NewLedger(list []Limit) Ledger {
	l := Ledger{}
	for i := range list {
		key := limitKey{list[i].Scope, list[i].ID}
		if key.scope == ScopeKeypair {
			key.id = list[i].Owner
		}
		acc := &account{Limit: &list[i], used: list[i].Used.Clone(), sessions: list[i].Sessions}
		if acc.used == nil {
			acc.used = resource.Slots{}
		}
		l[key] = append(l[key], acc)
	}
	return l
}

// of returns the accounts of a session, innermost first.
func (l Ledger) of(r *Request) []*account {
	var list []*account
	for _, key := range []limitKey{{ScopeKeypair, r.Owner}, {ScopeUser, r.Owner}, {ScopeProject, r.Project}, {ScopeDomain, r.Domain}} {
		for _, acc := range l[key] {
			if (acc.Group == uuid.Nil || acc.Group == r.Group) && (acc.Within == uuid.Nil || acc.Within == r.Project) {
				list = append(list, acc)
			}
		}
	}
	return list
}

// Reached returns every limit that the session would exceed.
func (l Ledger) Reached(r *Request) []report.LimitReached {
	var list []report.LimitReached
	total := totalOf(r)
	for _, acc := range l.of(r) {
		if acc.Scope == ScopeKeypair && acc.ID != r.Keypair {
			continue
		}
		if acc.MaxSessions != nil && acc.sessions >= *acc.MaxSessions {
			list = append(list, acc.reached("sessions", fmt.Sprint(acc.sessions), "1", fmt.Sprint(*acc.MaxSessions)))
		}
		for _, name := range total.Names() {
			// A request for nothing passes even if a limit was lowered below the usage.
			most, limited := acc.Total[name]
			if asked := total[name]; (limited || acc.UnlistedZero) && asked > 0 && asked > most-acc.used[name] {
				list = append(list, acc.reached(name, resource.Format(name, acc.used[name]), resource.Format(name, asked), resource.Format(name, most)))
			}
		}
	}
	return list
}

func (a *account) reached(what, used, asked, most string) report.LimitReached {
	return report.LimitReached{
		Scope: a.Scope, Holder: a.Holder, ResourceGroup: a.GroupName, WithinProject: a.ProjectName,
		Policy: a.Policy, What: what, Used: used, Requested: asked, Limit: most,
	}
}

// Charge adds a session that was placed.
func (l Ledger) Charge(r *Request) {
	total := totalOf(r)
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
