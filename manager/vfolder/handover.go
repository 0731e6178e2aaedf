package vfolder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/vfoldershare"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const handOverKind = "vfolder.hand_over"

// handing is the input of a task that transfers a folder to another user.
type handing struct{ Folder, To uuid.UUID }

// HandOverVfolder transfers a user's folder to another user of the same domain, in a task. It
// requires the permission to change users.
func (s *Service) HandOverVfolder(ctx context.Context, in HandOverVfolderInput) (*VfolderTaskPayload, error) {
	f, err := s.inState(ctx, in.ID, vfolder.StatusReady)
	if err != nil {
		return nil, err
	}
	if f.OwnerID == nil {
		return nil, problem.Precondition("a project's folder has no owner").WithField("id")
	}
	if err := permit.To(ctx, access.Update, f); err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Update, access.User, access.Object{Domain: f.DomainID}); err != nil {
		return nil, err
	}
	to, err := s.Client.User.Query().Where(user.ID(in.User), user.DomainID(f.DomainID)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "user", "user")
	}
	if to.Status != user.StatusActive {
		return nil, errHeirGone
	}
	if err := s.movable(ctx, f); err != nil {
		return nil, err
	}
	out := &VfolderTaskPayload{}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		out.Task, err = s.Tasks.Enqueue(ctx, tx, tasks.Wanted{
			Kind: handOverKind, Title: fmt.Sprintf("Hand folder %s over to %s", f.Name, to.Email),
			Input: handing{Folder: f.ID, To: to.ID}, Subject: f.ID, Domain: f.DomainID,
		})
		return err
	})
	return s.enqueued(ctx, f.ID, out, err)
}

// handler runs the tasks that hand folders over.
type handler struct{ *Service }

// Undo returns an error once files may have moved.
func (handler) Undo(_ context.Context, _ *ent.Tx, t *ent.Task) error {
	if len(t.State) > 0 {
		return problem.Precondition("the folder is being handed over; wait until this has ended")
	}
	return nil
}

func (h handler) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	var in handing
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	f, err := h.whole(ctx, in.Folder)
	if ent.IsNotFound(err) {
		return problem.Precondition("the folder was deleted")
	}
	if err != nil {
		return err
	}
	vol := f.Edges.QuotaScope.Edges.Volume.Name
	if _, err := h.reach(vol); err != nil {
		return later(vol, err)
	}
	if err := h.movable(ctx, f); err != nil {
		return err
	}
	if err := at.Save(ctx, true, 0, 1); err != nil {
		return err
	}
	if err := h.HandOver(ctx, in.Folder, in.To); err != nil {
		return later(vol, err)
	}
	return nil
}

// HandOver transfers a user's folder to another user of the same domain: first its files move
// to the quota scope of the new owner, then the row changes. If the new owner has a folder of
// the name, a number is appended. It can be repeated after any interruption.
func (s *Service) HandOver(ctx context.Context, folder, to uuid.UUID) error {
	ctx = viewer.SystemContext(ctx)
	f, err := s.whole(ctx, folder)
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	from := f.Edges.QuotaScope
	if from.HolderID == to || f.Status == vfolder.StatusDeleting || f.Status == vfolder.StatusDeleted {
		return nil
	}
	if err := s.movable(ctx, f); err != nil {
		return err
	}
	scope, err := s.scope(ctx, from.Edges.Volume, quotascope.KindUser, to, f.DomainID)
	if err != nil {
		return err
	}
	p, err := s.materialiseScope(ctx, scope, from.Edges.Volume)
	if err != nil {
		return err
	}
	moved, err := p.rpc.MoveFolder(ctx, &storagepb.MoveFolderRequest{Folder: folderRef(f), ToScope: to.String()})
	if err != nil {
		return fmt.Errorf("move folder: %w", errgrpc.ToNative(err))
	}
	after, err := s.rehouse(ctx, f.ID, scope, moved.Path)
	if errors.Is(err, errHeirGone) {
		back := &storagepb.MoveFolderRequest{Folder: ref(from.Edges.Volume, scope, f), ToScope: from.HolderID.String()}
		if _, err := p.rpc.MoveFolder(ctx, back); err != nil {
			return fmt.Errorf("move folder back: %w", errgrpc.ToNative(err))
		}
	}
	if err != nil {
		return err
	}
	if after.Status == vfolder.StatusDeleted {
		// The folder was deleted permanently during the move: the deletion found nothing in
		// the old scope.
		return s.clear(ctx, p, ref(from.Edges.Volume, scope, f))
	}
	s.changed(ctx, f.ID)
	return nil
}

// clear deletes the files of a folder that no row refers to any longer.
func (s *Service) clear(ctx context.Context, p *proxy, f *storagepb.FolderRef) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if _, err := gathered(p.rpc.DeleteFolder(ctx, f)); err != nil {
		return errgrpc.ToNative(err)
	}
	return nil
}

// errHeirGone reports that the new owner is no longer active.
var errHeirGone = problem.Precondition("the user who was to get the folders is no longer active")

// movable returns an error if the folder is in use.
func (s *Service) movable(ctx context.Context, f *ent.Vfolder) error {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return unmounted(ctx, tx, f)
}

// rehouse updates path and owner of a folder unless it was deleted permanently in the
// meantime, and returns the changed row. A share with the new owner ends.
func (s *Service) rehouse(ctx context.Context, id uuid.UUID, scope *ent.QuotaScope, path string) (*ent.Vfolder, error) {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	// The lock on the user makes the choice of free names sequential.
	to, err := tx.User.Query().Where(user.ID(scope.HolderID)).ForUpdate().Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("lock the new owner: %w", err)
	}
	if err != nil || to.Status != user.StatusActive {
		return nil, errHeirGone
	}
	f, err := tx.Vfolder.Query().Where(vfolder.ID(id)).ForUpdate().Only(ctx)
	if err != nil || f.Status == vfolder.StatusDeleted {
		return f, err
	}
	name := f.Name
	if f.DeletedAt == nil {
		if name, err = freeName(ctx, tx, to.ID, f.Name); err != nil {
			return nil, err
		}
	}
	err = tx.VfolderShare.Update().Where(vfoldershare.VfolderID(id), vfoldershare.UserID(to.ID), vfoldershare.EndedAtIsNil()).
		SetStatus(vfoldershare.StatusLeft).SetEndedAt(clock.Now()).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("end the new owner's share: %w", err)
	}
	f, err = f.Update().SetOwnerID(to.ID).SetQuotaScopeID(scope.ID).SetPath(path).SetName(name).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change owner: %w", err)
	}
	return f, tx.Commit()
}

// freeName returns the wanted name, with a number appended if the owner already has a folder
// of the name.
func freeName(ctx context.Context, tx *ent.Tx, owner uuid.UUID, wanted string) (string, error) {
	taken := map[string]bool{}
	names, err := tx.Vfolder.Query().Where(vfolder.OwnerID(owner), vfolder.DeletedAtIsNil()).Select(vfolder.FieldName).Strings(ctx)
	if err != nil {
		return "", fmt.Errorf("read names: %w", err)
	}
	for _, n := range names {
		taken[n] = true
	}
	name := wanted
	for i := 2; taken[name]; i++ {
		suffix := "-" + strconv.Itoa(i)
		name = wanted[:min(len(wanted), maxName-len(suffix))] + suffix
	}
	return name, nil
}

// Forget removes the remains of a user who no longer owns folders: rows of deleted folders
// that no session mounted, and empty quota scopes. It returns the number of folders that are
// still being deleted; if there are any, it removes nothing.
func (s *Service) Forget(ctx context.Context, owner uuid.UUID) (left int, err error) {
	ctx = viewer.SystemContext(ctx)
	left, err = s.Client.Vfolder.Query().Where(vfolder.OwnerID(owner), vfolder.StatusEQ(vfolder.StatusDeleting)).Count(ctx)
	if err != nil || left > 0 {
		return left, err
	}
	_, err = s.Client.Vfolder.Delete().
		Where(vfolder.OwnerID(owner), vfolder.StatusEQ(vfolder.StatusDeleted), vfolder.Not(vfolder.HasMounts())).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("remove deleted folders: %w", err)
	}
	scopes, err := s.Client.QuotaScope.Query().Where(quotascope.KindEQ(quotascope.KindUser), quotascope.HolderID(owner)).
		WithVolume().All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read quota scopes: %w", err)
	}
	for _, scope := range scopes {
		if err := s.forgetScope(ctx, scope); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// forgetScope removes a quota scope. If its proxy cannot be reached, an empty directory stays
// on the volume, which does no harm.
func (s *Service) forgetScope(ctx context.Context, scope *ent.QuotaScope) error {
	used, err := s.Client.Vfolder.Query().Where(vfolder.QuotaScopeID(scope.ID)).Exist(ctx)
	if err != nil || used {
		return err
	}
	vol := scope.Edges.Volume.Name
	p, err := s.reach(vol)
	if err == nil {
		_, err = p.rpc.DeleteScope(ctx, &storagepb.ScopeRequest{Volume: vol, Scope: scope.HolderID.String()})
		err = errgrpc.ToNative(err)
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "remove quota scope", "volume", vol, "scope", scope.HolderID, "error", err)
	}
	return s.Client.QuotaScope.DeleteOne(scope).Exec(ctx)
}
