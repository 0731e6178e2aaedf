// Package vfolder owns virtual folders: who has which, on which volume, and
// the tickets with which people move their bytes. The bytes themselves live
// with the storage proxies.
package vfolder

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/storage/storagepb"
)

// Service creates, changes and deletes folders.
type Service struct {
	client   *ent.Client
	bus      *event.Bus
	signer   *ticket.Signer
	policies *policy.Service
	managers func() []string
	log      *slog.Logger

	// Rights tells what users may do; Recheck has what is open by one looked at again.
	Rights  func(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
	Recheck func(ctx context.Context, user uuid.UUID)

	mu      sync.Mutex
	proxies map[string]*proxy // by name
	joined  chan struct{}     // a proxy came, who may delete what waits for him
	told    context.Context   // ends when the managers are others
	tell    context.CancelFunc
	shut    []uuid.UUID // whose tickets count no longer, as last looked up
}

// New returns a Service; managers lists the addresses that proxies should dial.
func New(client *ent.Client, bus *event.Bus, signer *ticket.Signer, policies *policy.Service, managers func() []string, log *slog.Logger) *Service {
	return &Service{client: client, bus: bus, signer: signer, policies: policies, managers: managers, log: log,
		proxies: map[string]*proxy{}, joined: make(chan struct{}, 1)}
}

func (s *Service) changed(ctx context.Context, id uuid.UUID) {
	s.bus.Publish(ctx, event.Event{Topic: event.Vfolder, ID: id})
}

// CreateVfolder makes a folder on a volume: the row first, so that its name
// and the owner's count are held, then the directory.
func (s *Service) CreateVfolder(ctx context.Context, in CreateVfolderInput) (*VfolderPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	vol, err := s.volume(ctx, in.Volume)
	if err != nil {
		return nil, err
	}
	on := access.Object{Domain: v.Domain, Owner: v.User}
	domain, holder, kind := v.Domain, v.User, quotascope.KindUser
	if in.Project != nil {
		p, err := s.client.Project.Get(ctx, *in.Project)
		if err != nil {
			return nil, permit.Missing(err, "project", "project")
		}
		on = access.Object{Domain: p.DomainID, Project: p.ID}
		domain, holder, kind = p.DomainID, p.ID, quotascope.KindProject
	}
	if _, err := permit.Check(ctx, access.Create, access.Vfolder, on); err != nil {
		return nil, err
	}
	if err := s.allow(ctx, vol, domain, in.Project, access.VolumeCreate); err != nil {
		return nil, err
	}
	scope, err := s.scope(ctx, vol, kind, holder, domain)
	if err != nil {
		return nil, err
	}
	f, err := s.store(ctx, v, in, scope, domain)
	if err != nil {
		return nil, err
	}
	if err := s.materialise(ctx, f, scope, vol); err != nil {
		// Nothing was promised yet: take the row back, so that the name is free.
		if undo := s.client.Vfolder.DeleteOne(f).Exec(ctx); undo != nil {
			s.log.Error("take back a folder that could not be made", "folder", f.ID, "error", undo)
		}
		return nil, err
	}
	s.changed(ctx, f.ID)
	f, err = s.client.Vfolder.Get(ctx, f.ID)
	return &VfolderPayload{Vfolder: f}, err
}

func (s *Service) store(ctx context.Context, v *viewer.Viewer, in CreateVfolderInput, scope *ent.QuotaScope, domain uuid.UUID) (*ent.Vfolder, error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.admit(ctx, tx, v, domain, scope); err != nil {
		return nil, err
	}
	c := tx.Vfolder.Create().SetID(id.New(id.Vfolder)).SetName(in.Name).SetDomainID(domain).SetCreatorID(v.User).SetQuotaScopeID(scope.ID)
	if in.Project != nil {
		c.SetProjectID(*in.Project)
	} else {
		c.SetOwnerID(v.User)
	}
	f, err := c.Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a folder is already named %q", in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("store folder: %w", err)
	}
	return f, tx.Commit()
}

// volume finds the named volume, or the first one.
func (s *Service) volume(ctx context.Context, id *uuid.UUID) (*ent.Volume, error) {
	q := s.client.Volume.Query().Order(volume.ByCreatedAt())
	if id != nil {
		q.Where(volume.ID(*id))
	}
	vol, err := q.First(ctx)
	if ent.IsNotFound(err) && id == nil {
		return nil, problem.Unavailable("no storage proxy has joined yet")
	}
	if ent.IsNotFound(err) {
		return nil, problem.NotFound("volume").WithField("volume")
	}
	return vol, err
}

// scope finds or makes the quota scope of a user or project on a volume.
func (s *Service) scope(ctx context.Context, vol *ent.Volume, kind quotascope.Kind, holder, domain uuid.UUID) (*ent.QuotaScope, error) {
	sys := viewer.SystemContext(ctx)
	err := s.client.QuotaScope.Create().SetID(id.New(id.QuotaScope)).SetKind(kind).SetHolderID(holder).SetDomainID(domain).SetVolumeID(vol.ID).
		OnConflictColumns(quotascope.FieldVolumeID, quotascope.FieldKind, quotascope.FieldHolderID).Ignore().Exec(sys)
	if err != nil {
		return nil, fmt.Errorf("make quota scope: %w", err)
	}
	return s.client.QuotaScope.Query().Where(quotascope.VolumeID(vol.ID), quotascope.KindEQ(kind), quotascope.HolderID(holder)).Only(sys)
}

// materialise makes scope and directory at the proxy and notes the path.
func (s *Service) materialise(ctx context.Context, f *ent.Vfolder, scope *ent.QuotaScope, vol *ent.Volume) error {
	p, err := s.materialiseScope(ctx, scope, vol)
	if err != nil {
		return err
	}
	dir, err := p.rpc.CreateFolder(ctx, ref(vol, scope, f))
	if err != nil {
		return fmt.Errorf("make folder: %w", errgrpc.ToNative(err))
	}
	return s.client.Vfolder.UpdateOne(f).SetPath(dir.Path).Exec(ctx)
}

// materialiseScope makes a scope at the proxy of its volume, and returns the proxy.
func (s *Service) materialiseScope(ctx context.Context, scope *ent.QuotaScope, vol *ent.Volume) (*proxy, error) {
	p, err := s.reach(vol.Name)
	if err != nil {
		return nil, err
	}
	limit, err := s.bytesLimit(ctx, scope)
	if err != nil {
		return nil, err
	}
	made, err := p.rpc.CreateScope(ctx, &storagepb.ScopeRequest{Volume: vol.Name, Scope: scope.HolderID.String(), LimitBytes: limit})
	if err != nil {
		return nil, fmt.Errorf("make quota scope: %w", errgrpc.ToNative(err))
	}
	return p, s.client.QuotaScope.UpdateOneID(scope.ID).SetEnforcement(made.Enforcement).Exec(ctx)
}

func ref(vol *ent.Volume, scope *ent.QuotaScope, f *ent.Vfolder) *storagepb.FolderRef {
	return &storagepb.FolderRef{Volume: vol.Name, Scope: scope.HolderID.String(), Folder: f.ID.String()}
}

// RenameVfolder gives a folder another name.
func (s *Service) RenameVfolder(ctx context.Context, in RenameVfolderInput) (*VfolderPayload, error) {
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	f, err := s.writable(ctx, in.ID, access.Update, access.VolumeModify)
	if err != nil {
		return nil, err
	}
	f, err = s.client.Vfolder.UpdateOne(f).SetName(in.Name).Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, problem.Exists("name", "a folder is already named %q", in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("rename folder: %w", err)
	}
	s.changed(ctx, f.ID)
	return &VfolderPayload{Vfolder: f}, nil
}

// DeleteVfolder marks a folder for deletion; the leader removes the data. A
// folder that a live session mounts is refused.
func (s *Service) DeleteVfolder(ctx context.Context, in DeleteVfolderInput) (*VfolderPayload, error) {
	f, err := s.writable(ctx, in.ID, access.Delete, access.VolumeDelete)
	if err != nil {
		return nil, err
	}
	if err := s.mark(ctx, f); err != nil {
		return nil, err
	}
	s.changed(ctx, f.ID)
	f, err = s.client.Vfolder.Get(ctx, f.ID)
	return &VfolderPayload{Vfolder: f}, err
}

// mark asks for a folder's deletion unless a live session mounts it. A session
// that is being created holds its folders, so one of the two waits for the other.
func (s *Service) mark(ctx context.Context, f *ent.Vfolder) error {
	sys := viewer.SystemContext(ctx)
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Vfolder.Query().Where(vfolder.ID(f.ID)).ForUpdate().OnlyID(sys); err != nil {
		return fmt.Errorf("lock folder: %w", err)
	}
	if err := unmounted(sys, tx, f); err != nil {
		return err
	}
	err = tx.Vfolder.Update().Where(vfolder.ID(f.ID), vfolder.StatusEQ(vfolder.StatusReady)).
		SetStatus(vfolder.StatusDeleting).SetDeletedAt(clock.Now()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("mark folder for deletion: %w", err)
	}
	return tx.Commit()
}

// unmounted refuses a folder that live sessions mount.
func unmounted(ctx context.Context, tx *ent.Tx, f *ent.Vfolder) error {
	mounts, err := tx.SessionMount.Query().
		Where(sessionmount.VfolderID(f.ID), sessionmount.HasSessionWith(session.TerminatedAtIsNil())).
		WithSession().All(ctx)
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	if len(mounts) > 0 {
		return problem.Precondition("folder %s is mounted by %d live sessions, %s among them",
			f.Name, len(mounts), mounts[0].Edges.Session.Name).WithField("id")
	}
	return nil
}

// writable returns a folder that the viewer may change, and that its volume
// lets him change.
func (s *Service) writable(ctx context.Context, id uuid.UUID, op access.Operation, need access.VolumePermission) (*ent.Vfolder, error) {
	f, err := s.client.Vfolder.Query().Where(vfolder.ID(id), vfolder.StatusEQ(vfolder.StatusReady)).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "folder", "id")
	}
	if err := permit.To(ctx, op, f); err != nil {
		return nil, err
	}
	return f, s.Allow(ctx, f, need)
}

const maxName = 64

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return problem.Invalid("name", "must have 1 to %d characters", maxName).WithLimit(fmt.Sprintf("1..%d", maxName))
	}
	dots := true
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && c != '.' && c != '-' && c != '_' {
			return problem.Invalid("name", "may have letters, digits, dots, dashes and underscores")
		}
		dots = dots && c == '.'
	}
	if dots || name[0] == '-' {
		return problem.Invalid("name", "must not be dots only nor begin with a dash")
	}
	return nil
}

func unavailable(err error) bool { return errdefs.IsUnavailable(err) }
