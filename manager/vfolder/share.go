package vfolder

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/vfoldershare"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxInvited = 50   // per request
	maxShares  = 1000 // per folder
	maxEmail   = 254
)

// ShareVfolderInput invites users to a folder. For a project's folder, it sets the permission
// of these members, which replaces the permission of all members.
type ShareVfolderInput struct {
	ID         uuid.UUID
	Emails     []string
	Permission access.FolderPermission
}

// ShareResult is the result for one e-mail address.
type ShareResult struct {
	Email string
	Share *ent.VfolderShare
	Error *string
}

// ShareVfolderPayload has a result for each e-mail address, in their order.
type ShareVfolderPayload struct{ Results []ShareResult }

// UpdateVfolderShareInput changes the permission of a share.
type UpdateVfolderShareInput struct {
	ID         uuid.UUID
	Permission access.FolderPermission
}

// RevokeVfolderShareInput, AcceptVfolderShareInput and DeclineVfolderShareInput name a share.
type (
	RevokeVfolderShareInput  struct{ ID uuid.UUID }
	AcceptVfolderShareInput  struct{ ID uuid.UUID }
	DeclineVfolderShareInput struct{ ID uuid.UUID }
)

// VfolderSharePayload is a share after a change.
type VfolderSharePayload struct{ Share *ent.VfolderShare }

// ShareVfolder invites users by e-mail. The result does not reveal whether a user with the
// address exists; the user sees the invitation after login.
func (s *Service) ShareVfolder(ctx context.Context, in ShareVfolderInput) (*ShareVfolderPayload, error) {
	if len(in.Emails) == 0 || len(in.Emails) > maxInvited {
		return nil, problem.Invalid("emails", "has %d addresses, which is too many", len(in.Emails)).WithLimit(fmt.Sprintf("1..%d", maxInvited))
	}
	f, err := s.shareable(ctx, in.ID, in.Permission)
	if err != nil {
		return nil, err
	}
	out := &ShareVfolderPayload{Results: make([]ShareResult, len(in.Emails))}
	for i, email := range in.Emails {
		r := &out.Results[i]
		r.Email = email
		share, err := s.shareWith(ctx, f, email, in.Permission)
		switch p, known := problem.From(err); {
		case err == nil:
			r.Share = share
			s.shareChanged(ctx, share)
		case known:
			r.Error = &p.Message
		default:
			return nil, err
		}
	}
	return out, nil
}

// shareable returns a folder that the viewer can share with this permission. No one can share
// a permission that they lack.
func (s *Service) shareable(ctx context.Context, folder uuid.UUID, p access.FolderPermission) (*ent.Vfolder, error) {
	atom := access.VolumeInvite
	f, err := s.Client.Vfolder.Query().Where(vfolder.ID(folder), vfolder.StatusEQ(vfolder.StatusReady)).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).WithOwner().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "folder", "id")
	}
	if f.ProjectID != nil {
		atom = access.VolumeSetUserPermission
	}
	if err := mayShare(ctx, f, p); err != nil {
		return nil, err
	}
	if err := s.allowedIn(ctx, f, nil, &p); err != nil {
		return nil, err
	}
	return f, s.Allow(ctx, f, atom)
}

func mayShare(ctx context.Context, f *ent.Vfolder, p access.FolderPermission) error {
	if err := permit.To(ctx, access.Update, f); err != nil {
		return err
	}
	for _, op := range access.Operations() {
		if access.Builtin(access.Vfolder, p.Relation(), op) {
			if err := permit.To(ctx, op, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// shareWith stores one share: an invitation, or the permission of a member of the project.
func (s *Service) shareWith(ctx context.Context, f *ent.Vfolder, email string, p access.FolderPermission) (*ent.VfolderShare, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if a, err := mail.ParseAddress(email); err != nil || a.Address != email || len(email) > maxEmail {
		return nil, problem.Invalid("emails", "%.80q is not an e-mail address", email).WithLimit(fmt.Sprint(maxEmail))
	}
	if f.Edges.Owner != nil && strings.EqualFold(f.Edges.Owner.Email, email) {
		return nil, problem.Invalid("emails", "this user owns the folder")
	}
	c := s.Client.VfolderShare.Create().SetVfolderID(f.ID).SetDomainID(f.DomainID).SetEmail(email).SetPermission(p)
	if v := viewer.From(ctx); v.User != uuid.Nil {
		c.SetInviterID(v.User)
	}
	if f.ProjectID != nil {
		member, err := s.Client.User.Query().Where(user.EmailEqualFold(email)).
			Where(user.HasMembershipsWith(membership.ProjectID(*f.ProjectID))).OnlyID(ctx)
		if ent.IsNotFound(err) {
			return nil, problem.Precondition("no member of the project has this address").WithField("emails")
		}
		if err != nil {
			return nil, fmt.Errorf("find member: %w", err)
		}
		c.SetUserID(member).SetStatus(vfoldershare.StatusAccepted).SetAnsweredAt(clock.Now())
	}
	live, err := s.Client.VfolderShare.Query().Where(vfoldershare.VfolderID(f.ID), vfoldershare.EndedAtIsNil()).Count(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("count shares: %w", err)
	}
	if live >= maxShares {
		return nil, problem.Exhausted("the folder is shared with %d people", live).WithField("emails").WithLimit(fmt.Sprint(maxShares))
	}
	share, err := c.Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("emails", "the folder is already shared with %s", email)
	}
	if err != nil {
		return nil, fmt.Errorf("store share: %w", err)
	}
	return share, nil
}

// UpdateVfolderShare changes the permission of a share, accepted or not.
func (s *Service) UpdateVfolderShare(ctx context.Context, in UpdateVfolderShareInput) (*VfolderSharePayload, error) {
	share, err := s.share(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if share.Edges.Vfolder == nil {
		return nil, problem.Forbidden("the invited user cannot change the permission")
	}
	if _, err := s.shareable(ctx, share.VfolderID, in.Permission); err != nil {
		return nil, err
	}
	return s.move(ctx, share, func(u *ent.VfolderShareUpdateOne) { u.SetPermission(in.Permission) },
		vfoldershare.StatusPending, vfoldershare.StatusAccepted)
}

// RevokeVfolderShare ends a share. The sharing user withdraws it, or the recipient leaves it.
func (s *Service) RevokeVfolderShare(ctx context.Context, in RevokeVfolderShareInput) (*VfolderSharePayload, error) {
	share, err := s.share(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	end := vfoldershare.StatusWithdrawn
	switch f := share.Edges.Vfolder; {
	case Addressed(viewer.From(ctx), share) && (f == nil || f.ProjectID == nil):
		if share.Status == vfoldershare.StatusPending {
			return s.DeclineVfolderShare(ctx, DeclineVfolderShareInput(in))
		}
		end = vfoldershare.StatusLeft
	default:
		if f == nil {
			return nil, problem.NotFound("share").WithField("id")
		}
		if err := permit.To(ctx, access.Update, f); err != nil {
			return nil, err
		}
	}
	return s.move(ctx, share, func(u *ent.VfolderShareUpdateOne) { u.SetStatus(end).SetEndedAt(clock.Now()) },
		vfoldershare.StatusPending, vfoldershare.StatusAccepted)
}

// AcceptVfolderShare accepts an invitation of the viewer.
func (s *Service) AcceptVfolderShare(ctx context.Context, in AcceptVfolderShareInput) (*VfolderSharePayload, error) {
	return s.answer(ctx, in.ID, func(v *viewer.Viewer, u *ent.VfolderShareUpdateOne) {
		u.SetStatus(vfoldershare.StatusAccepted).SetUserID(v.User)
	})
}

// DeclineVfolderShare declines an invitation of the viewer.
func (s *Service) DeclineVfolderShare(ctx context.Context, in DeclineVfolderShareInput) (*VfolderSharePayload, error) {
	return s.answer(ctx, in.ID, func(_ *viewer.Viewer, u *ent.VfolderShareUpdateOne) {
		u.SetStatus(vfoldershare.StatusDeclined).SetEndedAt(clock.Now())
	})
}

func (s *Service) answer(ctx context.Context, id uuid.UUID, set func(*viewer.Viewer, *ent.VfolderShareUpdateOne)) (*VfolderSharePayload, error) {
	share, err := s.share(ctx, id)
	if err != nil {
		return nil, err
	}
	if !Addressed(viewer.From(ctx), share) {
		return nil, problem.Forbidden("the invitation is for another user")
	}
	v := viewer.From(ctx)
	if v.Actor != uuid.Nil {
		return nil, problem.Forbidden("invitations cannot be accepted while acting as another user")
	}
	return s.move(ctx, share, func(u *ent.VfolderShareUpdateOne) { set(v, u); u.SetAnsweredAt(clock.Now()) }, vfoldershare.StatusPending)
}

// share reads a visible share, with its folder if the folder is visible too.
func (s *Service) share(ctx context.Context, id uuid.UUID) (*ent.VfolderShare, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if v := viewer.From(ctx); !v.Allows(access.TokenFolders) {
		return nil, problem.Forbidden("the access token lacks the scope %s", access.TokenFolders)
	}
	share, err := s.Client.VfolderShare.Query().Where(vfoldershare.ID(id)).WithVfolder().Only(ctx)
	return share, permit.Missing(err, "share", "id")
}

// Addressed reports whether a share is the viewer's own.
func Addressed(v *viewer.Viewer, share *ent.VfolderShare) bool {
	if share.UserID != nil {
		return *share.UserID == v.User
	}
	return v.User != uuid.Nil && v.Domain == share.DomainID && strings.EqualFold(v.Email, share.Email)
}

// SharedWith matches the shares for which Addressed is true.
func SharedWith(v *viewer.Viewer) predicate.VfolderShare {
	return vfoldershare.Or(vfoldershare.UserID(v.User),
		vfoldershare.And(vfoldershare.UserIDIsNil(), vfoldershare.Email(strings.ToLower(v.Email)), vfoldershare.DomainID(v.Domain)))
}

// move changes a share that is in one of the given states.
func (s *Service) move(ctx context.Context, share *ent.VfolderShare, set func(*ent.VfolderShareUpdateOne), from ...vfoldershare.Status) (*VfolderSharePayload, error) {
	u := s.Client.VfolderShare.UpdateOne(share).Where(vfoldershare.StatusIn(from...))
	set(u)
	after, err := u.Save(ctx)
	if ent.IsNotFound(err) || !slices.Contains(from, share.Status) {
		return nil, problem.Precondition("the share is %s", share.Status).WithField("id")
	}
	if err != nil {
		return nil, fmt.Errorf("change share: %w", err)
	}
	s.shareChanged(ctx, after)
	return &VfolderSharePayload{Share: after}, nil
}

// shareChanged notifies subscribers, and triggers a check of open mounts and transfers, because
// permissions may be reduced.
func (s *Service) shareChanged(ctx context.Context, share *ent.VfolderShare) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Share, ID: share.ID})
	s.changed(ctx, share.VfolderID)
	if share.UserID != nil {
		s.Users.Recheck(ctx, *share.UserID)
	}
}
