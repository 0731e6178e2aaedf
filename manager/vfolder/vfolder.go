// Package vfolder manages virtual folders: their rows, owners and volumes, and the tickets with
// which users transfer files. The files are on the storage proxies.
package vfolder

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/enrolment"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

// Users returns the permissions of users, and triggers checks of a user's mounts and transfers.
type Users interface {
	Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
	Recheck(ctx context.Context, user uuid.UUID)
}

// Config has the dependencies of a Service.
type Config struct {
	Client     *ent.Client
	Bus        *event.Bus
	Signer     *ticket.Ring
	Policies   *policy.Service
	Tasks      *tasks.Service
	Enrolments *enrolment.Service // checks that storage proxies belong to the cluster
	Users      Users
	// Managers returns the addresses that proxies should connect to.
	Managers func() []string
	Logger   *slog.Logger
}

// Service creates, changes and deletes folders.
type Service struct {
	Config

	mu        sync.Mutex
	proxies   map[string]*proxy // by name
	back      chan struct{}     // receives when the health of a volume has improved
	announced context.Context   // ends when the list of managers changes
	announce  context.CancelFunc
	rounded   map[string]rounded // limits by volume and scope, as products rounded them
	shut      []uuid.UUID        // users whose tickets are revoked, as of the last query
}

// New returns a Service, and registers the kinds of its tasks.
func New(cfg Config) *Service {
	s := &Service{Config: cfg, proxies: map[string]*proxy{}, back: make(chan struct{}, 1), rounded: map[string]rounded{}}
	s.Tasks.Register(deleteKind, remover{s})
	s.Tasks.Register(cloneKind, cloner{s})
	s.Tasks.Register(copyKind, copier{s})
	s.Tasks.Register(handOverKind, handler{s})
	s.Tasks.Register(orphanKind, orphanRemover{s})
	return s
}

func (s *Service) changed(ctx context.Context, id uuid.UUID) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Vfolder, ID: id})
}

// CreateVfolder creates a folder on a volume: first the row, which reserves the name and the
// owner's quota, then the directory.
func (s *Service) CreateVfolder(ctx context.Context, in CreateVfolderInput) (*VfolderPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	w, err := s.wanted(ctx, v, folderRequest{in.Name, in.Volume, in.Project, in.UsageMode, in.Permission})
	if err != nil {
		return nil, err
	}
	var f *ent.Vfolder
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		f, err = s.store(ctx, tx, v, w, new(int64), func(*ent.VfolderCreate) {})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.materialise(ctx, f, w.scope, w.volume); err != nil {
		// The directory was not created: delete the row, so that the name is free.
		if undo := s.Client.Vfolder.DeleteOneID(f.ID).Exec(ctx); undo != nil {
			s.Logger.Error("remove a folder that could not be created", "folder", f.ID, "error", undo)
		}
		return nil, err
	}
	return s.after(ctx, f.ID, nil)
}

// folderRequest is the request for a new folder.
type folderRequest struct {
	name       string
	volume     *uuid.UUID
	project    *uuid.UUID
	mode       *vfolder.UsageMode
	permission *access.FolderPermission
}

// wanted is a new folder that the viewer may create.
type wanted struct {
	folderRequest
	volume *ent.Volume
	scope  *ent.QuotaScope
	domain uuid.UUID
}

// wanted finds the volume and the scope of a new folder, and returns an error if the viewer
// cannot create it.
func (s *Service) wanted(ctx context.Context, v *viewer.Viewer, in folderRequest) (*wanted, error) {
	if err := checkName(in.name); err != nil {
		return nil, err
	}
	if in.permission != nil && in.project == nil {
		return nil, problem.Invalid("permission", "is only for folders of a project")
	}
	vol, err := s.volume(ctx, in.volume)
	if err != nil {
		return nil, err
	}
	domain := v.Domain
	on := access.Object{Domain: v.Domain, Owner: v.User}
	holder, kind := v.User, quotascope.KindUser
	if in.project != nil {
		p, err := s.Client.Project.Get(ctx, *in.project)
		if err != nil {
			return nil, permit.Missing(err, "project", "project")
		}
		on = access.Object{Domain: p.DomainID, Project: p.ID}
		domain, holder, kind = p.DomainID, p.ID, quotascope.KindProject
		if err := in.inModelStore(p); err != nil {
			return nil, err
		}
	}
	if _, err := permit.Check(ctx, access.Create, access.Vfolder, on); err != nil {
		return nil, err
	}
	w := &wanted{folderRequest: in, volume: vol, domain: domain}
	if err := s.allow(ctx, vol, domain, in.project, access.VolumeCreate); err != nil {
		return nil, err
	}
	w.scope, err = s.scope(ctx, vol, kind, holder, domain)
	return w, err
}

// store inserts the row of a new folder with the given number of bytes.
func (s *Service) store(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, w *wanted, brings *int64, set func(*ent.VfolderCreate)) (*ent.Vfolder, error) {
	if err := s.checkQuota(ctx, tx, v, w.domain, w.scope, brings); err != nil {
		return nil, err
	}
	c := tx.Vfolder.Create().SetID(id.New(id.Vfolder)).SetName(w.name).SetDomainID(w.domain).SetCreatorID(v.User).SetQuotaScopeID(w.scope.ID).
		SetNillableUsageMode(w.mode).SetNillablePermission(w.permission).SetNillableProjectID(w.project)
	if w.project == nil {
		c.SetOwnerID(v.User)
	}
	set(c)
	f, err := c.Save(ctx)
	if err := named(w.name, err); err != nil {
		return nil, fmt.Errorf("store folder: %w", err)
	}
	return f, nil
}

// volume returns the given volume, or the first one.
func (s *Service) volume(ctx context.Context, id *uuid.UUID) (*ent.Volume, error) {
	q := s.Client.Volume.Query().Order(volume.ByCreatedAt())
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

// scope returns the quota scope of a user or project on a volume, and creates it if needed.
func (s *Service) scope(ctx context.Context, vol *ent.Volume, kind quotascope.Kind, holder, domain uuid.UUID) (*ent.QuotaScope, error) {
	sys := viewer.SystemContext(ctx)
	err := s.Client.QuotaScope.Create().SetID(id.New(id.QuotaScope)).SetKind(kind).SetHolderID(holder).SetDomainID(domain).SetVolumeID(vol.ID).
		OnConflictColumns(quotascope.FieldVolumeID, quotascope.FieldKind, quotascope.FieldHolderID).Ignore().Exec(sys)
	if err != nil {
		return nil, fmt.Errorf("create quota scope: %w", err)
	}
	return s.Client.QuotaScope.Query().Where(quotascope.VolumeID(vol.ID), quotascope.KindEQ(kind), quotascope.HolderID(holder)).Only(sys)
}

// materialise creates the scope and the directory at the proxy and stores the path.
func (s *Service) materialise(ctx context.Context, f *ent.Vfolder, scope *ent.QuotaScope, vol *ent.Volume) error {
	p, err := s.materialiseScope(ctx, scope, vol)
	if err != nil {
		return err
	}
	dir, err := p.rpc.CreateFolder(ctx, ref(vol, scope, f))
	if err != nil {
		return fmt.Errorf("make folder: %w", errgrpc.ToNative(err))
	}
	return s.Client.Vfolder.UpdateOne(f).SetPath(dir.Path).Exec(ctx)
}

// materialiseScope creates a scope at a proxy of its volume, and returns the proxy.
func (s *Service) materialiseScope(ctx context.Context, scope *ent.QuotaScope, vol *ent.Volume) (*proxy, error) {
	p, err := s.reach(vol.Name)
	if err != nil {
		return nil, err
	}
	return p, s.makeScope(ctx, p, scope, vol)
}

func (s *Service) makeScope(ctx context.Context, p *proxy, scope *ent.QuotaScope, vol *ent.Volume) error {
	limit, err := s.bytesLimit(ctx, scope)
	if err != nil {
		return err
	}
	made, err := p.rpc.CreateScope(ctx, request(scope, vol, limit))
	if err != nil {
		return fmt.Errorf("create quota scope: %w", errgrpc.ToNative(err))
	}
	return s.Client.QuotaScope.UpdateOneID(scope.ID).SetEnforcement(made.Enforcement).Exec(ctx)
}

func ref(vol *ent.Volume, scope *ent.QuotaScope, f *ent.Vfolder) *storagepb.FolderRef {
	return &storagepb.FolderRef{Volume: vol.Name, Scope: scope.HolderID.String(), Folder: f.ID.String()}
}

// UpdateVfolder changes the name, the use and the permission for project members of a folder.
func (s *Service) UpdateVfolder(ctx context.Context, in UpdateVfolderInput) (*VfolderPayload, error) {
	if in.Name != nil {
		if err := checkName(*in.Name); err != nil {
			return nil, err
		}
	}
	f, err := s.inState(ctx, in.ID, vfolder.StatusReady)
	if err != nil {
		return nil, err
	}
	if err := s.changeable(ctx, f, access.VolumeModify, access.Update); err != nil {
		return nil, err
	}
	if err := s.allowedIn(ctx, f, in.UsageMode, in.Permission); err != nil {
		return nil, err
	}
	up := s.Client.Vfolder.UpdateOneID(f.ID).Where(vfolder.StatusEQ(vfolder.StatusReady)).SetNillableUsageMode(in.UsageMode).SetNillableName(in.Name)
	if in.Permission != nil {
		if f.ProjectID == nil {
			return nil, problem.Invalid("permission", "is only for folders of a project")
		}
		if err := s.changeable(ctx, f, access.VolumeSetUserPermission); err != nil {
			return nil, err
		}
		up.SetPermission(*in.Permission)
	}
	if in.Name != nil {
		f.Name = *in.Name
	}
	return s.after(ctx, f.ID, named(f.Name, up.Exec(ctx)))
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
			return problem.Invalid("name", "may contain letters, digits, dots, dashes and underscores")
		}
		dots = dots && c == '.'
	}
	if dots || name[0] == '-' {
		return problem.Invalid("name", "must not consist of dots or begin with a dash")
	}
	if slices.Contains(reserved, strings.ToLower(name)) {
		return problem.Invalid("name", "%s is reserved: sessions and their programs use it", name)
	}
	return nil
}

// reserved are dot files in a session's home that shells, SSH or Berth use. A folder of such a
// name would be mounted over them.
var reserved = []string{
	".ssh", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_history", ".profile", ".inputrc", ".zshrc", ".zshenv", ".zprofile",
	".zlogin", ".zsh_history", ".vimrc", ".screenrc", ".tmux.conf", ".netrc", ".gitconfig", ".config", ".terminfo", ".berth",
}

// AutoMounts reports whether sessions mount a folder of that name automatically.
func AutoMounts(name string) bool { return strings.HasPrefix(name, ".") }
