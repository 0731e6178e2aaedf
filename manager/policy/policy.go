package policy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Service writes resource policies and evaluates them.
type Service struct {
	client *ent.Client
	bus    *event.Bus
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus // for changes of limits
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, bus: cfg.Bus} }

// changed publishes that limits have changed: pending sessions may fit now, and volumes must
// apply new limits.
func (s *Service) changed(ctx context.Context) {
	s.bus.Publish(ctx, event.Event{Topic: event.Pending})
	s.bus.Publish(ctx, event.Event{Topic: event.Policy})
}

// CreateResourcePolicyInput describes a new policy; nil means no limit.
type CreateResourcePolicyInput struct {
	Name            string
	TotalSlots      resource.Slots
	UnlistedSlots   *resourcepolicy.UnlistedSlots // for slots that TotalSlots does not list
	MaxPendingSlots resource.Slots
	Amounts
}

// UpdateResourcePolicyInput changes the fields that are not nil; -1 removes a limit.
type UpdateResourcePolicyInput struct {
	ID              uuid.UUID
	Name            *string
	TotalSlots      resource.Slots
	UnlistedSlots   *resourcepolicy.UnlistedSlots
	MaxPendingSlots resource.Slots
	Amounts
}

// DeleteResourcePolicyInput names a policy.
type DeleteResourcePolicyInput struct{ ID uuid.UUID }

// DeleteResourcePolicyPayload is the id of the deleted policy.
type DeleteResourcePolicyPayload struct{ ID uuid.UUID }

// ResourcePolicyPayload is a policy after a change.
type ResourcePolicyPayload struct{ Policy *ent.ResourcePolicy }

// CreateResourcePolicy creates a policy.
func (s *Service) CreateResourcePolicy(ctx context.Context, in CreateResourcePolicyInput) (*ResourcePolicyPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.ResourcePolicy, access.Object{}); err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	if err := checkAll(in.TotalSlots, in.MaxPendingSlots, in.Amounts, 0); err != nil {
		return nil, err
	}
	c := s.client.ResourcePolicy.Create().SetName(in.Name).SetNillableUnlistedSlots(in.UnlistedSlots)
	if in.TotalSlots != nil {
		c.SetTotalSlots(in.TotalSlots)
	}
	if in.MaxPendingSlots != nil {
		c.SetMaxPendingSlots(in.MaxPendingSlots)
	}
	if err := in.Amounts.write(c.Mutation()); err != nil {
		return nil, err
	}
	p, err := c.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create policy: %w", err)
	}
	return &ResourcePolicyPayload{Policy: p}, nil
}

// UpdateResourcePolicy changes limits. They apply to sessions that start afterwards.
func (s *Service) UpdateResourcePolicy(ctx context.Context, in UpdateResourcePolicyInput) (*ResourcePolicyPayload, error) {
	if err := s.changes(ctx, access.Update, in.ID); err != nil {
		return nil, err
	}
	if in.Name != nil {
		if err := naming.Name("name", *in.Name); err != nil {
			return nil, err
		}
	}
	if err := checkAll(in.TotalSlots, in.MaxPendingSlots, in.Amounts, unlimited); err != nil {
		return nil, err
	}
	up := s.client.ResourcePolicy.UpdateOneID(in.ID).SetNillableName(in.Name).SetNillableUnlistedSlots(in.UnlistedSlots)
	if in.TotalSlots != nil {
		up.SetTotalSlots(in.TotalSlots)
	}
	if in.MaxPendingSlots != nil {
		up.SetMaxPendingSlots(in.MaxPendingSlots)
	}
	if err := in.Amounts.write(up.Mutation()); err != nil {
		return nil, err
	}
	p, err := up.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change policy %s: %w", in.ID, err)
	}
	s.changed(ctx)
	return &ResourcePolicyPayload{Policy: p}, nil
}

// DeleteResourcePolicy deletes a policy without attachments.
func (s *Service) DeleteResourcePolicy(ctx context.Context, in DeleteResourcePolicyInput) (*DeleteResourcePolicyPayload, error) {
	if err := s.changes(ctx, access.Delete, in.ID); err != nil {
		return nil, err
	}
	sys := viewer.SystemContext(ctx)
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	// A concurrent attachment waits for this row, and then does not find it.
	if _, err := tx.ResourcePolicy.Query().Where(resourcepolicy.ID(in.ID)).ForUpdate().OnlyID(sys); err != nil {
		return nil, fmt.Errorf("lock policy %s: %w", in.ID, err)
	}
	n, err := tx.PolicyAttachment.Query().Where(policyattachment.PolicyID(in.ID)).Count(sys)
	if err != nil {
		return nil, fmt.Errorf("count attachments: %w", err)
	}
	if n > 0 {
		return nil, problem.Precondition("the policy is attached %d times; detach it first", n).WithField("id")
	}
	if err := tx.ResourcePolicy.DeleteOneID(in.ID).Exec(sys); err != nil {
		return nil, fmt.Errorf("delete policy %s: %w", in.ID, err)
	}
	return &DeleteResourcePolicyPayload{ID: in.ID}, tx.Commit()
}

// changes checks the permission to change a policy.
func (s *Service) changes(ctx context.Context, op access.Operation, policy uuid.UUID) error {
	if _, err := permit.Writer(ctx); err != nil {
		return err
	}
	_, err := s.client.ResourcePolicy.Get(ctx, policy)
	if err != nil {
		return permit.Missing(err, "policy", "id")
	}
	_, err = permit.Check(ctx, op, access.ResourcePolicy, access.Object{ID: policy})
	return err
}
