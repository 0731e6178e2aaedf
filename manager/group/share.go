package group

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/shareweight"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// maxWeight is 1000 times the default; a larger weight would starve all others.
const maxWeight = 1000

// SetShareWeightInput sets the weight of one domain, project or user, for a user optionally
// within one project, in one group or in all groups.
type SetShareWeightInput struct {
	Weight                                              float64
	ResourceGroup, Domain, Project, User, WithinProject *uuid.UUID
}

// ShareWeightPayload is the changed weight.
type ShareWeightPayload struct{ ShareWeight *ent.ShareWeight }

// DeleteShareWeightInput names a weight.
type DeleteShareWeightInput struct{ ID uuid.UUID }

// DeleteShareWeightPayload is the id of the removed weight.
type DeleteShareWeightPayload struct{ ID uuid.UUID }

// SetShareWeight sets or replaces a weight.
func (s *Service) SetShareWeight(ctx context.Context, in SetShareWeightInput) (*ShareWeightPayload, error) {
	if err := s.mayWeigh(ctx, in.ResourceGroup, "resourceGroup"); err != nil {
		return nil, err
	}
	if !(in.Weight > 0 && in.Weight <= maxWeight) { // excludes NaN
		return nil, problem.Invalid("weight", "must be above 0 and at most %d", maxWeight).WithLimit(fmt.Sprint(maxWeight))
	}
	of, err := in.holder()
	if err != nil {
		return nil, err
	}
	if err := s.inSight(ctx, in); err != nil {
		return nil, err
	}
	out := &ShareWeightPayload{}
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		// Unique indexes treat nulls as different, so a lock makes sure that there is one row.
		if err := store.Lock(ctx, tx, "share weights"); err != nil {
			return err
		}
		sys := viewer.SystemContext(ctx)
		have, err := tx.ShareWeight.Query().Where(of...).First(sys)
		switch {
		case ent.IsNotFound(err):
			have, err = tx.ShareWeight.Create().SetWeight(in.Weight).SetNillableResourceGroupID(in.ResourceGroup).
				SetNillableDomainID(in.Domain).SetNillableProjectID(in.Project).SetNillableUserID(in.User).
				SetNillableWithinProjectID(in.WithinProject).Save(sys)
		case err == nil:
			have, err = have.Update().SetWeight(in.Weight).Save(sys)
		}
		if err != nil {
			return fmt.Errorf("weigh a share: %w", err)
		}
		out.ShareWeight = have
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.ShareWeight = out.ShareWeight.Unwrap()
	s.bus.Publish(ctx, event.Event{Topic: event.Pending}) // the order of queues may have changed
	return out, nil
}

// DeleteShareWeight removes a weight. The weight for all groups, or the default of 1, applies
// again.
func (s *Service) DeleteShareWeight(ctx context.Context, in DeleteShareWeightInput) (*DeleteShareWeightPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	w, err := s.client.ShareWeight.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "share weight", "id")
	}
	if err := s.mayWeigh(ctx, w.ResourceGroupID, "id"); err != nil {
		return nil, err
	}
	if err := s.client.ShareWeight.DeleteOne(w).Exec(ctx); err != nil {
		return nil, permit.Missing(err, "share weight", "id")
	}
	s.bus.Publish(ctx, event.Event{Topic: event.Pending})
	return &DeleteShareWeightPayload{ID: in.ID}, nil
}

// mayWeigh checks that the viewer can change the group, or all groups if it is nil.
func (s *Service) mayWeigh(ctx context.Context, in *uuid.UUID, field string) error {
	if in == nil {
		_, err := permit.Check(ctx, access.Update, access.ResourceGroup, access.Object{})
		return err
	}
	_, err := s.permitted(ctx, access.Update, *in, field)
	return err
}

// holder returns the conditions for the weights of one domain, project or user in one group.
func (in *SetShareWeightInput) holder() ([]predicate.ShareWeight, error) {
	var of []predicate.ShareWeight
	if in.Domain != nil {
		of = append(of, shareweight.DomainID(*in.Domain))
	}
	if in.Project != nil {
		of = append(of, shareweight.ProjectID(*in.Project))
	}
	if in.User != nil {
		of = append(of, shareweight.UserID(*in.User))
	}
	if len(of) != 1 {
		return nil, problem.Invalid("input", "name exactly one of domain, project and user, not %d", len(of))
	}
	if in.WithinProject != nil && in.User == nil {
		return nil, problem.Invalid("withinProject", "only a user has a weight within a project")
	}
	if in.ResourceGroup != nil {
		of = append(of, shareweight.ResourceGroupID(*in.ResourceGroup))
	} else {
		of = append(of, shareweight.ResourceGroupIDIsNil())
	}
	if in.WithinProject != nil {
		return append(of, shareweight.WithinProjectID(*in.WithinProject)), nil
	}
	return append(of, shareweight.WithinProjectIDIsNil()), nil
}

// inSight checks that the viewer can see the domain, project or user.
func (s *Service) inSight(ctx context.Context, in SetShareWeightInput) error {
	if in.WithinProject != nil {
		if _, err := s.client.Project.Get(ctx, *in.WithinProject); err != nil {
			return permit.Missing(err, "project", "withinProject")
		}
	}
	return s.exists(ctx, GrantResourceGroupInput{Domain: in.Domain, Project: in.Project, User: in.User})
}
