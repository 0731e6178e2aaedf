package agents

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// record stores an agent's full report: its row, its devices, its slot types.
func (s *Service) record(ctx context.Context, c *conn, r *agentpb.Report, observer Observer) (uuid.UUID, error) {
	if r.Name != c.peer.Name {
		return uuid.Nil, fmt.Errorf("certificate of %s, report of %s: %w", c.peer.Name, r.Name, errdefs.ErrPermissionDenied)
	}
	if host, _, err := net.SplitHostPort(c.peer.Remote); err == nil && r.Address == "" {
		r.Address = host
	}
	images := make(map[string]bool, len(r.Images))
	for _, ref := range r.Images {
		images[ref] = true
	}
	digests := make(map[string]string, len(r.Contents))
	for _, i := range r.Contents {
		digests[i.Reference] = digestOf(i)
	}
	s.mu.Lock()
	c.images, c.digests = images, digests
	s.mu.Unlock()
	if s.Layers != nil {
		s.Layers.Report(c.peer.Name, r)
	}

	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	defer func() { _ = tx.Rollback() }()
	id, err := upsertAgent(ctx, tx, c, r)
	if err != nil {
		return uuid.Nil, err
	}
	if s.Enrolments != nil { // with the agent's row locked, so that it cannot be expelled meanwhile
		if err := s.Enrolments.AdmitIn(ctx, tx, c.peer.Role, c.peer.Name, c.peer.Enrolment); err != nil {
			return uuid.Nil, err
		}
	}
	s.mu.Lock()
	c.id = id
	s.mu.Unlock()
	if err := recordImages(ctx, tx, id, r.Contents); err != nil {
		return uuid.Nil, err
	}
	counted, err := upsertSlotTypes(ctx, tx, r.SlotTypes)
	if err != nil {
		return uuid.Nil, err
	}
	if err := upsertDevices(ctx, tx, id, r.Devices); err != nil {
		return uuid.Nil, err
	}
	if err := countSlots(ctx, tx, counted); err != nil {
		return uuid.Nil, err
	}
	if err := observer.Adopt(ctx, id, r.Kernels); err != nil {
		return uuid.Nil, err
	}
	if err := tx.Commit(); err != nil {
		return uuid.Nil, err
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
	s.Bus.Publish(ctx, event.Event{Topic: event.Pending})
	return id, nil
}

func upsertAgent(ctx context.Context, tx *ent.Tx, c *conn, r *agentpb.Report) (uuid.UUID, error) {
	a, err := tx.Agent.Query().Where(agent.Name(r.Name)).Only(ctx)
	if ent.IsNotFound(err) {
		group, err := firstGroup(ctx, tx, r.ResourceGroup)
		if err != nil {
			return uuid.Nil, err
		}
		a, err = tx.Agent.Create().SetName(r.Name).SetResourceGroupID(group).Save(ctx)
		if err != nil {
			return uuid.Nil, fmt.Errorf("create agent: %w", err)
		}
	} else if err != nil {
		return uuid.Nil, err
	}
	counters, err := countersOf(r.Counters)
	if err != nil {
		return uuid.Nil, err
	}
	c.conditions = a.Conditions
	c.conditions, _ = c.judge(time.Now(), r.Conditions)
	err = tx.Agent.UpdateOne(a).SetConditions(c.conditions).
		SetCounters(counters).SetLinks(linksOf(r.Links)).SetOverlay(overlayOf(r.Overlay)).SetAllowedCounts(countsOf(r.SlotTypes)).
		SetStatus(agent.StatusAlive).ClearLostAt().SetIncarnation(r.Incarnation).SetVersion(r.Version).
		SetArchitecture(r.Architecture).SetAddress(r.Address).SetZone(r.Zone).SetVolumes(nonNil(r.Volumes)).
		SetPlugins(plugins(r.Plugins)).SetProbes(probes(r.Probes)).SetLastSeenAt(time.Now()).
		Exec(ctx)
	return a.ID, err
}

// overlayOf returns how kernels on other agents reach those of an agent. The report of an
// older agent lacks it.
func overlayOf(o *agentpb.Overlay) report.Overlay {
	if o == nil {
		return report.Overlay{Off: "its version has none"}
	}
	return report.Overlay{Endpoint: o.Endpoint, MTU: int(o.Mtu), Off: o.Off}
}

// firstGroup returns the group of a new agent: the one that it requests, or the oldest.
func firstGroup(ctx context.Context, tx *ent.Tx, name string) (uuid.UUID, error) {
	if name != "" {
		id, err := tx.ResourceGroup.Query().Where(resourcegroup.Name(name)).OnlyID(ctx)
		if err == nil || !ent.IsNotFound(err) {
			return id, err
		}
	}
	id, err := tx.ResourceGroup.Query().Order(resourcegroup.ByCreatedAt()).FirstID(ctx)
	if err != nil {
		return uuid.Nil, fmt.Errorf("no resource group for a new agent: %w", err)
	}
	return id, nil
}

// upsertDevices stores the reported devices and marks the others lost. It keeps the rows of
// lost devices, because allocations and history refer to them.
func upsertDevices(ctx context.Context, tx *ent.Tx, agentID uuid.UUID, devices []*agentpb.Device) error {
	var present []string
	for _, d := range devices {
		capacity, err := resource.ParseSlots(d.Capacity)
		if err != nil {
			return fmt.Errorf("device %s: %w: %w", d.Id, err, errdefs.ErrInvalidArgument)
		}
		consumes, err := consumesOf(d)
		if err != nil {
			return err
		}
		present = append(present, d.Id)
		create := tx.Device.Create().SetAgentID(agentID).SetDeviceID(d.Id).SetPlugin(d.Plugin).
			SetVendor(d.Vendor).SetModel(d.Model).SetCapacity(capacity).SetAttributes(attributes(d.Attributes)).
			SetHealth(health[d.Health]).SetHealthMessage(d.HealthMessage).SetAllocatable(d.Allocatable).
			SetRejectReasons(nonNil(d.RejectReasons)).SetPcieRoot(d.PcieRoot).SetParent(d.Parent).
			SetGroups(nonNil(d.Groups)).SetConsumes(consumes).SetPciAddress(d.PciAddress).
			SetMemoryBytes(int64(min(d.MemoryBytes, math.MaxInt64))).SetProcessingUnits(int(d.ProcessingUnits))
		if d.NumaNode != nil {
			create.SetNumaNode(int(*d.NumaNode))
		}
		err = create.OnConflictColumns(device.FieldAgentID, device.FieldDeviceID).
			Update(func(u *ent.DeviceUpsert) {
				u.UpdatePlugin().UpdateVendor().UpdateModel().UpdateCapacity().UpdateAttributes().UpdateNumaNode().
					UpdateHealth().UpdateHealthMessage().UpdateAllocatable().UpdateRejectReasons().
					UpdatePcieRoot().UpdateParent().UpdateGroups().UpdateConsumes().
					UpdatePciAddress().UpdateMemoryBytes().UpdateProcessingUnits()
			}).Exec(ctx)
		if err != nil {
			return fmt.Errorf("record device %s: %w", d.Id, err)
		}
	}
	return tx.Device.Update().
		Where(device.AgentID(agentID), device.DeviceIDNotIn(present...),
			device.Or(device.HealthNEQ(device.HealthLost), device.Allocatable(true))). // a plugin may already have reported it as lost
		SetHealth(device.HealthLost).SetHealthMessage(unreported).SetAllocatable(false).
		Exec(ctx)
}

var health = map[agentpb.Device_Health]device.Health{
	agentpb.Device_HEALTHY:   device.HealthHealthy,
	agentpb.Device_DEGRADED:  device.HealthDegraded,
	agentpb.Device_UNHEALTHY: device.HealthUnhealthy,
	agentpb.Device_LOST:      device.HealthLost,
	agentpb.Device_UNKNOWN:   device.HealthUnknown,
}

func probes(list []*agentpb.Probe) []report.Probe {
	out := []report.Probe{}
	for _, p := range list {
		out = append(out, report.Probe{Name: p.Name, OK: p.Ok, Detail: p.Detail})
	}
	return out
}

func attributes(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
