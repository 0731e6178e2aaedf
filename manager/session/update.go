package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/syntax"
	"github.com/berthhq/berth/manager/slot"
	"github.com/berthhq/berth/manager/store"
)

// UpdatePendingSessionInput changes the request of a pending session; nil fields stay unchanged.
type UpdatePendingSessionInput struct {
	ID            uuid.UUID
	Slots         resource.Slots
	ResourceGroup *uuid.UUID
	StrictAgents  *bool
}

// UpdatePendingSession changes the request of a pending session, which keeps its place in the
// queue.
func (s *Service) UpdatePendingSession(ctx context.Context, in UpdatePendingSessionInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	c, err := s.change(ctx, sess, in)
	if err != nil {
		return nil, err
	}
	if len(c.said) == 0 {
		return &SessionPayload{Session: sess}, nil
	}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error { return s.carryOut(ctx, tx, sess, c) })
	if err != nil {
		return nil, err
	}
	s.changed(ctx, sess.ID)
	sess, err = s.Client.Session.Get(ctx, sess.ID)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return &SessionPayload{Session: sess}, nil
}

// change is a checked change of a session.
type change struct {
	sessionSpec
	said  []string // changes in words, for the history
	grows bool     // the session counts towards more or other limits
}

// change checks an input against the current session.
func (s *Service) change(ctx context.Context, sess *ent.Session, in UpdatePendingSessionInput) (*change, error) {
	v := viewer.From(ctx)
	c := &change{sessionSpec: sessionSpec{
		resolved: resolved{project: sess.ProjectID, domain: sess.DomainID, group: sess.ResourceGroupID,
			slots: sess.Slots, strict: sess.StrictAgents, keypair: sess.KeypairID},
		owner: sess.OwnerID, kind: sess.Type, priority: sess.Priority, lifetime: sess.Lifetime, stored: true,
	}}
	err := waits(sess)
	if err != nil {
		return nil, err
	}
	if in.StrictAgents != nil && *in.StrictAgents && !c.strict {
		return nil, problem.Invalid("strictAgents", "can only be set to false")
	} else if in.StrictAgents != nil && !*in.StrictAgents && c.strict {
		c.strict = false
		c.said = append(c.said, "may run on any agent")
	}
	c.image, err = sess.QueryImage().Only(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if in.Slots != nil {
		if err := s.resize(ctx, c, in.Slots); err != nil {
			return nil, err
		}
	}
	c.groups = []uuid.UUID{c.group}
	if in.ResourceGroup != nil && *in.ResourceGroup != c.group {
		if c.groups, err = s.groups(ctx, v, in.ResourceGroup, &c.sessionSpec); err != nil {
			return nil, err
		}
		if c.strict {
			return nil, problem.Precondition("strictAgents binds the session to agents of its resource group; set strictAgents to false as well").WithField("resourceGroup")
		}
		name, err := s.Client.ResourceGroup.Query().Where(resourcegroup.ID(c.groups[0])).Select(resourcegroup.FieldName).String(ctx)
		if err != nil {
			return nil, fmt.Errorf("read resource group: %w", err)
		}
		c.said, c.grows = append(c.said, "resource group "+name), true
	}
	if len(c.said) == 0 {
		return c, nil
	}
	if c.strict {
		if c.agents, err = sess.QueryAgents().IDs(viewer.SystemContext(ctx)); err != nil {
			return nil, fmt.Errorf("read requested agents: %w", err)
		}
	}
	if c.kernels, err = sess.QueryKernels().Count(viewer.SystemContext(ctx)); err != nil {
		return nil, fmt.Errorf("count kernels: %w", err)
	}
	if c.group, err = s.Fitter.Choose(ctx, c.groups, c.need()); err != nil {
		return nil, err
	}
	at := policy.Place{Domain: c.domain, Project: c.project, User: c.owner, Group: c.group}
	if c.keypair != nil {
		at.Keypair = *c.keypair
	}
	if s.Budgets != nil {
		if c.budgets, err = s.Budgets.Binding(ctx, at); err != nil {
			return nil, err
		}
	}
	c.limits, err = s.Policies.Binding(viewer.SystemContext(ctx), at)
	return c, err
}

// waits returns an error for a session that can no longer be changed.
func waits(sess *ent.Session) error {
	if sess.Status != lifecycle.Pending {
		return problem.Precondition("the session is no longer pending: it is %s", sess.Status).WithField("id")
	}
	return nil
}

// resize checks new amounts and describes the change.
func (s *Service) resize(ctx context.Context, c *change, asked resource.Slots) error {
	slots := slot.Complete(asked)
	slot.Fill(slots, asked, slot.Minimum(c.image))
	if maps.Equal(slots, c.slots) {
		return nil
	}
	if err := slot.Check(ctx, s.Client, asked); err != nil {
		return err
	}
	if err := slot.CheckMinimum(c.image, slots); err != nil {
		return err
	}
	c.resize(slots)
	return nil
}

// resized describes the change of amounts.
func (c *change) resize(slots resource.Slots) {
	both := slots.Clone()
	maps.Copy(both, c.slots)
	for _, name := range both.Names() {
		if from, to := c.slots[name], slots[name]; from != to {
			c.said = append(c.said, fmt.Sprintf("%s %s instead of %s", resource.ForPeople(name, to), name, resource.ForPeople(name, from)))
			c.grows = c.grows || to > from
		}
	}
	c.slots = slots
}

// carryOut writes a change, unless the session is no longer pending or has another version.
func (s *Service) carryOut(ctx context.Context, tx *ent.Tx, sess *ent.Session, c *change) error {
	now, err := tx.Session.Query().Where(session.ID(sess.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return permit.Missing(err, "session", "id")
	}
	if err := waits(now); err != nil {
		return err
	}
	if now.ResourceGroupID != sess.ResourceGroupID || now.StrictAgents != sess.StrictAgents || !maps.Equal(now.Slots, sess.Slots) {
		return problem.Aborted("another request has changed the session; reload it and try again")
	}
	u := tx.Session.UpdateOne(now).AddVersion(1).SetSlots(c.slots).SetStrictAgents(c.strict).SetResourceGroupID(c.group).ClearPending()
	if c.group != now.ResourceGroupID {
		u.ClearAgents() // they belong to the previous group
	}
	if err := u.Exec(ctx); err != nil {
		return fmt.Errorf("change session: %w", err)
	}
	if err := tx.Kernel.Update().Where(kernel.SessionID(sess.ID), kernel.TerminatedAtIsNil()).SetSlots(c.slots).Exec(ctx); err != nil {
		return fmt.Errorf("change kernels: %w", err)
	}
	if c.grows {
		if err := s.admit(ctx, tx, &c.sessionSpec); err != nil {
			return err
		}
	}
	pending := lifecycle.Pending
	return history.Record(ctx, tx, history.Entry{Session: sess.ID, Phase: "schedule", From: &pending, To: pending, Result: sessionevent.ResultInfo,
		Attempt: now.Attempt, Code: "changed", Message: "changed while it waits: " + strings.Join(c.said, ", ")})
}

// RenameSessionInput is the new name of a session.
type RenameSessionInput struct {
	ID   uuid.UUID
	Name string
}

// RenameSession changes the name of a session.
func (s *Service) RenameSession(ctx context.Context, in RenameSessionInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := syntax.Name(in.Name); err != nil {
		return nil, err
	}
	sess, err = s.Client.Session.UpdateOne(sess).SetName(in.Name).AddVersion(1).Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a live session is already named %q", in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("rename session: %w", err)
	}
	s.changed(ctx, sess.ID)
	return &SessionPayload{Session: sess}, nil
}

// SetSessionTagsInput replaces the tags of a session.
type SetSessionTagsInput struct {
	ID   uuid.UUID
	Tags []string
}

// SetSessionTags replaces the tags of a session, which may have ended.
func (s *Service) SetSessionTags(ctx context.Context, in SetSessionTagsInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := syntax.Tags(in.Tags); err != nil {
		return nil, err
	}
	if slices.Equal(sess.Tags, in.Tags) {
		return &SessionPayload{Session: sess}, nil
	}
	if sess, err = s.Client.Session.UpdateOne(sess).SetTags(in.Tags).AddVersion(1).Save(ctx); err != nil {
		return nil, fmt.Errorf("set tags of session %s: %w", in.ID, err)
	}
	s.changed(ctx, sess.ID)
	return &SessionPayload{Session: sess}, nil
}
