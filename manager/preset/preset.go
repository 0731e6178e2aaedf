// Package preset manages named requests of slots, for one resource group or for all, and returns
// which of them the viewer could start now.
package preset

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/slot"
)

// maxShm is the limit of shared memory, in bytes.
const maxShm = 1 << 40

// Service writes presets and evaluates them.
type Service struct {
	client    *ent.Client
	scheduler *scheduler.Scheduler
}

// Config has the dependencies of a Service.
type Config struct {
	Client    *ent.Client
	Scheduler *scheduler.Scheduler
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, scheduler: cfg.Scheduler} }

// CreateResourcePresetInput describes a new preset.
type CreateResourcePresetInput struct {
	Name          string
	Description   *string
	Slots         resource.Slots
	ShmBytes      *int64
	ResourceGroup *uuid.UUID // nil is all
}

// UpdateResourcePresetInput changes the fields that are not nil.
type UpdateResourcePresetInput struct {
	ID          uuid.UUID
	Name        *string
	Description *string
	Slots       resource.Slots
	ShmBytes    *int64
}

// DeleteResourcePresetInput names a preset.
type DeleteResourcePresetInput struct{ ID uuid.UUID }

// ResourcePresetPayload is a preset after a change.
type ResourcePresetPayload struct{ Preset *ent.ResourcePreset }

// DeleteResourcePresetPayload is the id of the deleted preset.
type DeleteResourcePresetPayload struct{ ID uuid.UUID }

// CreateResourcePreset creates a preset.
func (s *Service) CreateResourcePreset(ctx context.Context, in CreateResourcePresetInput) (*ResourcePresetPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.ResourcePreset, access.Object{}); err != nil {
		return nil, err
	}
	if in.Slots == nil {
		in.Slots = resource.Slots{}
	}
	if err := s.check(ctx, &in.Name, in.Slots, in.ShmBytes); err != nil {
		return nil, err
	}
	if in.ResourceGroup != nil {
		if _, err := s.client.ResourceGroup.Get(ctx, *in.ResourceGroup); ent.IsNotFound(err) {
			return nil, problem.NotFound("resource group").WithField("resourceGroup")
		} else if err != nil {
			return nil, err
		}
	}
	p, err := s.client.ResourcePreset.Create().SetName(in.Name).SetNillableDescription(in.Description).
		SetSlots(in.Slots).SetNillableShmBytes(in.ShmBytes).SetNillableResourceGroupID(in.ResourceGroup).Save(ctx)
	return stored(p, err, in.Name)
}

// UpdateResourcePreset changes a preset. Its resource group cannot change.
func (s *Service) UpdateResourcePreset(ctx context.Context, in UpdateResourcePresetInput) (*ResourcePresetPayload, error) {
	p, err := s.find(ctx, access.Update, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx, in.Name, in.Slots, in.ShmBytes); err != nil {
		return nil, err
	}
	u := s.client.ResourcePreset.UpdateOne(p).SetNillableName(in.Name).SetNillableDescription(in.Description).SetNillableShmBytes(in.ShmBytes)
	if in.Slots != nil {
		u.SetSlots(in.Slots)
	}
	name := p.Name
	if in.Name != nil {
		name = *in.Name
	}
	p, err = u.Save(ctx)
	return stored(p, err, name)
}

// DeleteResourcePreset deletes a preset; sessions that were created with it continue.
func (s *Service) DeleteResourcePreset(ctx context.Context, in DeleteResourcePresetInput) (*DeleteResourcePresetPayload, error) {
	p, err := s.find(ctx, access.Delete, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.client.ResourcePreset.DeleteOne(p).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete preset: %w", err)
	}
	return &DeleteResourcePresetPayload{ID: in.ID}, nil
}

func (s *Service) find(ctx context.Context, op access.Operation, id uuid.UUID) (*ent.ResourcePreset, error) {
	p, err := s.client.ResourcePreset.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "preset", "id")
	}
	_, err = permit.Check(ctx, op, access.ResourcePreset, access.Object{ID: id})
	return p, err
}

func stored(p *ent.ResourcePreset, err error, name string) (*ResourcePresetPayload, error) {
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a preset of the same resource group is already named %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("store preset: %w", err)
	}
	return &ResourcePresetPayload{Preset: p}, nil
}

// check returns an error for values that no session could request. Nil values are not checked.
func (s *Service) check(ctx context.Context, name *string, slots resource.Slots, shm *int64) error {
	if name != nil {
		if err := naming.Name("name", *name); err != nil {
			return err
		}
	}
	if shm != nil && (*shm < 0 || *shm > maxShm) {
		return problem.Invalid("shmBytes", "must be between 0 and 1 TiB").WithLimit(fmt.Sprint(int64(maxShm)))
	}
	if slots == nil {
		return nil
	}
	if len(slots) == 0 {
		return problem.Invalid("slots", "must name at least one slot")
	}
	return slot.Check(ctx, s.client, slots)
}
