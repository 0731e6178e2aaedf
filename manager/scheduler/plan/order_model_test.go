package plan_test

import (
	"bytes"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// rule is the order as the documentation describes it, computed from scratch for every decision.
type rule struct {
	s    *plan.Snapshot
	left []*plan.Request
	held []plan.Holding
}

func newRule(s *plan.Snapshot) *rule {
	m := &rule{s: s, held: slices.Clone(s.Holdings)}
	for i := range s.Pending {
		m.left = append(m.left, &s.Pending[i])
	}
	return m
}

func (m *rule) decided(d *plan.Decision) {
	i := slices.IndexFunc(m.left, func(r *plan.Request) bool { return r.SessionID == d.SessionID })
	r := m.left[i]
	m.left = slices.Delete(m.left, i, i+1)
	if d.Placed() {
		for _, k := range r.Kernels {
			m.held = append(m.held, plan.Holding{Group: r.Group, Domain: r.Domain, Project: r.Project, Owner: r.Owner, Slots: k.Slots})
		}
	}
}

// next lists the sessions of which one must be decided next: one session, or several if their usage
// differs by no more than rounding.
func (m *rule) next() []uuid.UUID {
	var fronts []*plan.Request
	sure := true
	for i := range m.s.Groups {
		of := m.front(&m.s.Groups[i])
		sure = sure && len(of) <= 1
		fronts = append(fronts, of...)
	}
	if sure && len(fronts) > 0 {
		fronts = []*plan.Request{slices.MinFunc(fronts, older)}
	}
	var list []uuid.UUID
	for _, r := range fronts {
		list = append(list, r.SessionID)
	}
	return list
}

func older(a, b *plan.Request) int {
	if a.Priority != b.Priority {
		return b.Priority - a.Priority
	}
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return bytes.Compare(a.SessionID[:], b.SessionID[:])
}

func (m *rule) front(g *plan.Group) []*plan.Request {
	var band []*plan.Request
	for _, r := range m.left {
		if r.Group != g.ID {
			continue
		}
		if len(band) > 0 && r.Priority > band[0].Priority {
			band = nil
		}
		if len(band) == 0 || r.Priority == band[0].Priority {
			band = append(band, r)
		}
	}
	if len(band) == 0 {
		return nil
	}
	levels := g.Sharing.Levels
	switch {
	case g.Order == plan.OrderLIFO:
		return []*plan.Request{slices.MaxFunc(band, older)}
	case g.Order != plan.OrderDRF && g.Order != plan.OrderFairShare:
		return []*plan.Request{slices.MinFunc(band, older)}
	case levels == nil && g.Order == plan.OrderDRF:
		levels = []string{plan.ScopeUser}
	case levels == nil:
		levels = []string{plan.ScopeDomain, plan.ScopeProject, plan.ScopeUser}
	}
	held := slices.DeleteFunc(slices.Clone(m.held), func(h plan.Holding) bool { return h.Group != g.ID })
	return m.descend(g, levels, uuid.Nil, band, held)
}

func member(scope string, domain, project, owner uuid.UUID) uuid.UUID {
	return map[string]uuid.UUID{plan.ScopeDomain: domain, plan.ScopeProject: project, plan.ScopeUser: owner}[scope]
}

func (m *rule) descend(g *plan.Group, levels []string, within uuid.UUID, band []*plan.Request, held []plan.Holding) []*plan.Request {
	if len(levels) == 0 {
		return []*plan.Request{slices.MinFunc(band, older)}
	}
	least := math.Inf(1)
	scores := map[uuid.UUID]float64{}
	requests := map[uuid.UUID][]*plan.Request{}
	holdings := map[uuid.UUID][]plan.Holding{}
	for _, r := range band {
		id := member(levels[0], r.Domain, r.Project, r.Owner)
		requests[id] = append(requests[id], r)
	}
	for _, h := range held {
		id := member(levels[0], h.Domain, h.Project, h.Owner)
		holdings[id] = append(holdings[id], h)
	}
	for id := range requests {
		scores[id] = m.score(g, levels[0], id, within, holdings[id])
		least = min(least, scores[id])
	}
	var fronts []*plan.Request
	sure := least == 0
	for id, score := range scores {
		if score <= least*(1+1e-9) {
			of := m.descend(g, levels[1:], id, requests[id], holdings[id])
			sure = sure && len(of) == 1
			fronts = append(fronts, of...)
		}
	}
	if sure {
		return []*plan.Request{slices.MinFunc(fronts, older)}
	}
	return fronts
}

// score is the usage divided by the weight.
func (m *rule) score(g *plan.Group, scope string, id, within uuid.UUID, held []plan.Holding) float64 {
	usage := dominantShare(m.s, g.ID, held)
	weight, past, here := 0.0, 0.0, false
	general, generalPast := 0.0, 0.0
	for _, sh := range m.s.Shares {
		if sh.Group != g.ID || sh.Scope != scope || sh.ID != id {
			continue
		}
		if sh.Within == within {
			here = true
			weight, past = max(weight, sh.Weight), max(past, sh.Usage)
		}
		if sh.Within == uuid.Nil {
			general, generalPast = max(general, sh.Weight), max(generalPast, sh.Usage)
		}
	}
	if !here {
		past = generalPast
	}
	if weight == 0 {
		weight = general
	}
	if weight == 0 {
		weight = 1
	}
	if g.Order == plan.OrderFairShare {
		const hours = 7 * 24 / math.Ln2 * (1 - 1.0/16) // half-life 7 days, lookback 28 days
		usage = past + usage/hours
	}
	return usage / weight
}

func dominantShare(s *plan.Snapshot, group uuid.UUID, held []plan.Holding) float64 {
	sum, most := resource.Slots{}, 0.0
	for _, h := range held {
		sum.Add(h.Slots)
	}
	for _, a := range s.Agents {
		for _, d := range a.Devices {
			for name, has := range d.Capacity {
				if a.Group == group {
					most = max(most, float64(sum[name])/float64(has))
				}
			}
		}
	}
	return most
}
