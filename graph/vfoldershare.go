package graph

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/user"
	entvfolder "github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/vfoldershare"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/vfolder"
)

func (r queryResolver) VfolderShares(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.VfolderShareOrder, where *ent.VfolderShareWhereInput, mine *bool) (*ent.VfolderShareConnection, error) {
	q := r.Client.VfolderShare.Query()
	if mine != nil && *mine {
		q.Where(vfolder.SharedWith(viewer.From(ctx)))
	}
	return q.Paginate(ctx, after, first, before, last, ent.WithVfolderShareOrder(orderBy), ent.WithVfolderShareFilter(where.Filter))
}

// Shares is visible to users who can share the folder.
func (r vfolderResolver) Shares(ctx context.Context, f *ent.Vfolder) ([]*ent.VfolderShare, error) {
	e, on, _ := permit.Of(f)
	if !viewer.From(ctx).May(access.Update, e, on) {
		return []*ent.VfolderShare{}, nil
	}
	return loaders(ctx).sharesOf.Load(ctx, f.ID)
}

func (r vfolderResolver) MyShare(ctx context.Context, f *ent.Vfolder) (*ent.VfolderShare, error) {
	return loaders(ctx).myShare.Load(ctx, f.ID)
}

// liveShares queries the shares of the folders that have not ended, with the selected fields.
func (r *Resolver) liveShares(folders []uuid.UUID) *ent.VfolderShareQuery {
	return r.Client.VfolderShare.Query().Where(vfoldershare.VfolderIDIn(folders...), vfoldershare.EndedAtIsNil()).
		WithVfolder().WithUser().WithInviter()
}

func (r *Resolver) loadSharesOf(ctx context.Context, folders []uuid.UUID) (map[uuid.UUID][]*ent.VfolderShare, error) {
	all, err := r.liveShares(folders).Order(vfoldershare.ByEmail()).All(ctx)
	m := map[uuid.UUID][]*ent.VfolderShare{}
	for _, s := range all {
		m[s.VfolderID] = append(m[s.VfolderID], s)
	}
	return m, err
}

func (r *Resolver) loadMyShare(ctx context.Context, folders []uuid.UUID) (map[uuid.UUID]*ent.VfolderShare, error) {
	all, err := r.liveShares(folders).Where(vfolder.SharedWith(viewer.From(ctx))).All(ctx)
	m := map[uuid.UUID]*ent.VfolderShare{}
	for _, s := range all {
		m[s.VfolderID] = s
	}
	return m, err
}

// loadFolderNames and loadEmails read the names and addresses in an invitation: the invited
// user cannot see the folder and its owner otherwise.
func (r *Resolver) loadFolderNames(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	all, err := r.Client.Vfolder.Query().Where(entvfolder.IDIn(ids...)).Select(entvfolder.FieldID, entvfolder.FieldName).All(viewer.SystemContext(ctx))
	m := map[uuid.UUID]string{}
	for _, f := range all {
		m[f.ID] = f.Name
	}
	return m, err
}

func (r *Resolver) loadEmails(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	all, err := r.Client.User.Query().Where(user.IDIn(ids...)).Select(user.FieldID, user.FieldEmail).All(viewer.SystemContext(ctx))
	m := map[uuid.UUID]string{}
	for _, u := range all {
		m[u.ID] = u.Email
	}
	return m, err
}

func (r vfolderShareResolver) VfolderName(ctx context.Context, s *ent.VfolderShare) (string, error) {
	return loaders(ctx).folderNames.Load(ctx, s.VfolderID)
}

func (r vfolderShareResolver) InviterEmail(ctx context.Context, s *ent.VfolderShare) (*string, error) {
	if s.InviterID == nil {
		return nil, nil
	}
	email, err := loaders(ctx).emails.Load(ctx, *s.InviterID)
	return &email, err
}

func (r vfolderShareResolver) Mine(ctx context.Context, s *ent.VfolderShare) (bool, error) {
	return vfolder.Addressed(viewer.From(ctx), s), nil
}

// The fields of a share that can be invisible although the share is visible.
func (r vfolderShareResolver) Vfolder(ctx context.Context, s *ent.VfolderShare) (*ent.Vfolder, error) {
	f, err := s.Vfolder(ctx)
	return unseen(f, err)
}

func (r vfolderShareResolver) Inviter(ctx context.Context, s *ent.VfolderShare) (*ent.User, error) {
	u, err := s.Inviter(ctx)
	return unseen(u, err)
}

func (r vfolderShareResolver) User(ctx context.Context, s *ent.VfolderShare) (*ent.User, error) {
	u, err := s.User(ctx)
	return unseen(u, err)
}

// unseen returns nil for an object that the viewer cannot see.
func unseen[T any](x *T, err error) (*T, error) {
	var loaded *ent.NotLoadedError
	if ent.IsNotFound(err) || errors.As(err, &loaded) {
		return nil, nil
	}
	return x, err
}

func (r mutationResolver) ShareVfolder(ctx context.Context, input vfolder.ShareVfolderInput) (*vfolder.ShareVfolderPayload, error) {
	return r.Folders.ShareVfolder(ctx, input)
}

func (r mutationResolver) UpdateVfolderShare(ctx context.Context, input vfolder.UpdateVfolderShareInput) (*vfolder.VfolderSharePayload, error) {
	return r.Folders.UpdateVfolderShare(ctx, input)
}

func (r mutationResolver) RevokeVfolderShare(ctx context.Context, input vfolder.RevokeVfolderShareInput) (*vfolder.VfolderSharePayload, error) {
	return r.Folders.RevokeVfolderShare(ctx, input)
}

func (r mutationResolver) AcceptVfolderShare(ctx context.Context, input vfolder.AcceptVfolderShareInput) (*vfolder.VfolderSharePayload, error) {
	return r.Folders.AcceptVfolderShare(ctx, input)
}

func (r mutationResolver) DeclineVfolderShare(ctx context.Context, input vfolder.DeclineVfolderShareInput) (*vfolder.VfolderSharePayload, error) {
	return r.Folders.DeclineVfolderShare(ctx, input)
}

// VfolderShareChanged sends each visible share that changes.
func (r subscriptionResolver) VfolderShareChanged(ctx context.Context, id *uuid.UUID) (<-chan *ent.VfolderShare, error) {
	find := func(ctx context.Context, where ...predicate.VfolderShare) ([]*ent.VfolderShare, error) {
		q, err := r.Client.VfolderShare.Query().Where(where...).Limit(maxFeed).CollectFields(ctx, "VfolderShare", "Node")
		if err != nil {
			return nil, err
		}
		return q.All(ctx)
	}
	f := feed[*ent.VfolderShare]{
		topic: event.Share, id: id,
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.VfolderShare, error) {
			return find(ctx, vfoldershare.IDIn(ids...))
		},
		missed: func(ctx context.Context) ([]*ent.VfolderShare, error) {
			return find(ctx, vfoldershare.Or(vfoldershare.EndedAtIsNil(), vfoldershare.EndedAtGT(now().Add(-missedFor))))
		},
		first: func(context.Context) ([]*ent.VfolderShare, error) { return nil, nil },
	}
	if id != nil {
		f.missed = nil
		f.first = func(ctx context.Context) ([]*ent.VfolderShare, error) {
			return named(ctx, find, "share", vfoldershare.ID(*id))
		}
	}
	return follow(ctx, r.Resolver, f)
}
