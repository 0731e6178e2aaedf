package graph

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

func (r queryResolver) Devices(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.DeviceOrder, where *ent.DeviceWhereInput) (*ent.DeviceConnection, error) {
	return r.Client.Device.Query().Paginate(ctx, after, first, before, last, ent.WithDeviceOrder(orderBy), ent.WithDeviceFilter(where.Filter))
}

func (r deviceResolver) Occupied(ctx context.Context, d *ent.Device) (resource.Slots, error) {
	return loaders(ctx).byDevice.Load(ctx, d.ID)
}

func (r deviceResolver) Holders(ctx context.Context, d *ent.Device) ([]*model.DeviceHolder, error) {
	holders, err := loaders(ctx).holders.Load(ctx, d.ID)
	out := make([]*model.DeviceHolder, 0, len(holders))
	for _, h := range holders {
		out = append(out, &model.DeviceHolder{
			Slot: h.slot, Amount: resource.Format(h.slot, h.amount), Since: h.since, Session: h.session, Mine: h.mine,
		})
	}
	return out, err
}

// Enforcement returns the enforcement that the device's plugin reports, if it is one that the API
// knows.
func (r deviceResolver) Enforcement(_ context.Context, d *ent.Device) (*string, error) {
	switch how := d.Attributes["enforcement"]; how {
	case "advisory", "limit", "mps", "mig":
		return &how, nil
	}
	return nil, nil
}

func (r deviceResolver) Parent(ctx context.Context, d *ent.Device) (*ent.Device, error) {
	return deviceNamed(ctx, d.AgentID, d.Parent)
}

func (r deviceResolver) Partitions(ctx context.Context, d *ent.Device) ([]*ent.Device, error) {
	all, err := loaders(ctx).devices.Load(ctx, d.AgentID)
	parts := []*ent.Device{}
	for _, other := range all {
		if other.Parent == d.DeviceID {
			parts = append(parts, other)
		}
	}
	return parts, err
}

// Links returns the links of a device from both ends, whichever end the agent reports.
func (r deviceResolver) Links(ctx context.Context, d *ent.Device) ([]*model.DeviceLink, error) {
	a, err := loaders(ctx).topology.Load(ctx, d.AgentID)
	links := []*model.DeviceLink{}
	if err != nil || a == nil {
		return links, err
	}
	for _, l := range a.Links {
		peer := l.B
		if l.B == d.DeviceID {
			peer = l.A
		}
		if l.A == d.DeviceID || l.B == d.DeviceID {
			links = append(links, &model.DeviceLink{Link: l, Agent: d.AgentID, PeerID: peer})
		}
	}
	return links, nil
}

func (r deviceResolver) Counters(ctx context.Context, d *ent.Device) ([]*model.DeviceCounter, error) {
	a, err := loaders(ctx).topology.Load(ctx, d.AgentID)
	counters := []*model.DeviceCounter{}
	if err != nil || a == nil {
		return counters, err
	}
	for _, use := range d.Consumes {
		for name, n := range use.Amounts {
			counters = append(counters, &model.DeviceCounter{Set: use.Set, Name: name, Amount: n, Total: a.Counters[use.Set][name]})
		}
	}
	slices.SortFunc(counters, func(a, b *model.DeviceCounter) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Name, b.Name))
	})
	return counters, nil
}

func (r deviceResolver) Metrics(ctx context.Context, d *ent.Device) ([]*report.Metric, error) {
	st, err := loaders(ctx).stats.Load(ctx, d.AgentID)
	own := []*report.Metric{}
	for _, m := range st.Metrics {
		if m.DeviceID == d.DeviceID {
			own = append(own, &m)
		}
	}
	return own, err
}

func (r deviceLinkResolver) Peer(ctx context.Context, l *model.DeviceLink) (*ent.Device, error) {
	return deviceNamed(ctx, l.Agent, l.PeerID)
}

// deviceNamed returns a device by the agent's name for it, or nil.
func deviceNamed(ctx context.Context, agent uuid.UUID, name string) (*ent.Device, error) {
	if name == "" {
		return nil, nil
	}
	all, err := loaders(ctx).devices.Load(ctx, agent)
	if i := slices.IndexFunc(all, func(d *ent.Device) bool { return d.DeviceID == name }); i >= 0 {
		return all[i], err
	}
	return nil, err
}

// loadTopology reads the fields of agents that their devices share.
func (r *Resolver) loadTopology(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Agent, error) {
	agents, err := r.Client.Agent.Query().Where(agent.IDIn(ids...)).
		Select(agent.FieldID, agent.FieldLinks, agent.FieldCounters).All(ctx)
	m := map[uuid.UUID]*ent.Agent{}
	for _, a := range agents {
		m[a.ID] = a
	}
	return m, err
}
