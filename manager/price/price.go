// Package price keeps the price list of the cluster and computes costs. A price never changes: a
// new one replaces it from now or from a later time on, so the cost of the past stays what it was.
// Services that sum charges import it.
package price

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	entprice "github.com/berthhq/berth/ent/price"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// Service reads and writes the price list.
type Service struct{ client *ent.Client }

// New returns a Service.
func New(client *ent.Client) *Service { return &Service{client} }

// SetPriceInput is a new price.
type SetPriceInput struct {
	Kind          entprice.Kind
	Slot          *string
	Amount        string
	ValidFrom     *time.Time // nil: now
	ResourceGroup *uuid.UUID
	Deployment    *uuid.UUID
}

// PricePayload is the new price.
type PricePayload struct{ Price *ent.Price }

// DeletePriceInput names a price.
type DeletePriceInput struct{ ID uuid.UUID }

// DeletePricePayload is the id of the deleted price.
type DeletePricePayload struct{ ID uuid.UUID }

// SetPrice adds a price from now or from a later time on.
func (s *Service) SetPrice(ctx context.Context, in SetPriceInput) (*PricePayload, error) {
	v, err := permit.Check(ctx, access.Update, access.ResourcePolicy, access.Object{})
	if err != nil {
		return nil, err
	}
	micros, err := Parse("amount", in.Amount)
	if err != nil {
		return nil, err
	}
	if err := s.checkSubject(ctx, &in); err != nil {
		return nil, err
	}
	out := &PricePayload{}
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		// The lock makes requests sequential, so that a price is not in the past when it is stored.
		if err := store.Lock(ctx, tx, "prices"); err != nil {
			return err
		}
		sys, now := viewer.SystemContext(ctx), clock.Now()
		at := now
		if in.ValidFrom != nil {
			at = in.ValidFrom.UTC().Truncate(time.Microsecond)
		}
		if at.Before(now) {
			return problem.Invalid("validFrom", "%s is in the past, and past costs never change", at.Format(time.RFC3339)).WithLimit(now.Format(time.RFC3339))
		}
		switch twice, err := tx.Price.Query().Where(append(in.same(), entprice.ValidFrom(at))...).Exist(sys); {
		case err != nil:
			return fmt.Errorf("look for the price: %w", err)
		case twice:
			return problem.Exists("validFrom", "another price for the same begins at %s: delete it first", at.Format(time.RFC3339))
		}
		q := tx.Price.Create().SetKind(in.Kind).SetMicros(micros).SetValidFrom(at).SetNillableSlot(in.Slot).
			SetNillableResourceGroupID(in.ResourceGroup).SetNillableDeploymentID(in.Deployment)
		if v.User != uuid.Nil {
			q.SetCreatorID(v.User)
		}
		out.Price, err = q.Save(sys)
		if err != nil {
			return fmt.Errorf("store price: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Price = out.Price.Unwrap()
	return out, nil
}

// checkSubject checks what the price is for.
func (s *Service) checkSubject(ctx context.Context, in *SetPriceInput) error {
	if in.Kind != entprice.KindSlotHour {
		switch {
		case in.Slot != nil:
			return problem.Invalid("slot", "a price of tokens has no slot")
		case in.ResourceGroup != nil:
			return problem.Invalid("resourceGroup", "a price of tokens can be for one deployment, not for a resource group")
		case in.Deployment != nil:
			_, err := s.client.Deployment.Get(ctx, *in.Deployment)
			return permit.Missing(err, "deployment", "deployment")
		}
		return nil
	}
	switch {
	case in.Slot == nil || !resource.ValidName(*in.Slot):
		return problem.Invalid("slot", "must be the name of a slot, such as cpu, mem or cuda.shares")
	case in.Deployment != nil:
		return problem.Invalid("deployment", "a price of a slot can be for one resource group, not for a deployment")
	}
	if *in.Slot != resource.CPU && *in.Slot != resource.Mem {
		known, err := s.client.SlotType.Query().Where(slottype.Name(*in.Slot)).Exist(viewer.SystemContext(ctx))
		if err != nil {
			return fmt.Errorf("look for the slot: %w", err)
		}
		if !known {
			return problem.Invalid("slot", "no machine has ever offered the slot %q", *in.Slot)
		}
	}
	if in.ResourceGroup != nil {
		_, err := s.client.ResourceGroup.Get(ctx, *in.ResourceGroup)
		return permit.Missing(err, "resource group", "resourceGroup")
	}
	return nil
}

// same matches the prices for the same.
func (in *SetPriceInput) same() []predicate.Price {
	list := []predicate.Price{entprice.KindEQ(in.Kind)}
	if in.Slot != nil {
		list = append(list, entprice.Slot(*in.Slot))
	}
	if in.ResourceGroup != nil {
		list = append(list, entprice.ResourceGroupID(*in.ResourceGroup))
	} else {
		list = append(list, entprice.ResourceGroupIDIsNil())
	}
	if in.Deployment != nil {
		return append(list, entprice.DeploymentID(*in.Deployment))
	}
	return append(list, entprice.DeploymentIDIsNil())
}

// DeletePrice deletes a price that has not begun.
func (s *Service) DeletePrice(ctx context.Context, in DeletePriceInput) (*DeletePricePayload, error) {
	if _, err := permit.Check(ctx, access.Update, access.ResourcePolicy, access.Object{}); err != nil {
		return nil, err
	}
	p, err := s.client.Price.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "price", "id")
	}
	n, err := s.client.Price.Delete().Where(entprice.ID(p.ID), entprice.ValidFromGT(clock.Now())).Exec(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("delete price: %w", err)
	}
	if n == 0 {
		return nil, problem.Precondition("the price applies since %s, and past costs never change: set a new price instead", p.ValidFrom.UTC().Format(time.RFC3339))
	}
	return &DeletePricePayload{ID: in.ID}, nil
}

// List returns the prices that the viewer can see: those that apply now or later or, with the
// history, all.
func (s *Service) List(ctx context.Context, history bool) ([]*ent.Price, error) {
	all, err := s.client.Price.Query().Order(entprice.ByKind(descending), entprice.BySlot(), entprice.ByResourceGroupID(), entprice.ByDeploymentID(),
		entprice.ByValidFrom(descending), entprice.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	if history {
		return all, nil
	}
	now, begun, out := clock.Now(), map[Key]bool{}, []*ent.Price{}
	for _, p := range all {
		if !p.ValidFrom.After(now) {
			if begun[keyOf(p)] {
				continue
			}
			begun[keyOf(p)] = true
		}
		out = append(out, p)
	}
	return out, nil
}
