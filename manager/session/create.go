package session

import (
	"context"
	"fmt"
	"github.com/berthhq/berth/manager/store"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// CreateSession checks a request, stores it as pending and wakes the
// scheduler. A second request with the same idempotency key returns the
// session of the first one.
func (s *Service) CreateSession(ctx context.Context, in CreateSessionInput) (*SessionPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if in.IdempotencyKey != nil {
		if prior, err := s.byKey(ctx, v, *in.IdempotencyKey); prior != nil || err != nil {
			return &SessionPayload{Session: prior}, err
		}
	}
	w, err := s.check(ctx, v, in)
	if err != nil {
		return nil, err
	}
	created, err := s.storeBeside(ctx, w)
	if ent.IsConstraintError(err) && in.IdempotencyKey != nil {
		// The same request raced us; its session is the answer to both.
		if prior, keyErr := s.byKey(ctx, v, *in.IdempotencyKey); prior != nil {
			return &SessionPayload{Session: prior}, keyErr
		}
	}
	if ent.IsConstraintError(err) {
		return nil, nameTaken(w.name)
	}
	if err != nil {
		return nil, err
	}
	s.meter.created.Inc()
	s.Logger.InfoContext(ctx, "session created", "session", created.ID, "owner", created.OwnerID, "group", created.ResourceGroupID, "slots", created.Slots.String())
	s.changedBy(ctx, created.ID, byCreation)
	return &SessionPayload{Session: created}, nil
}

func nameTaken(name string) error {
	return problem.Exists("name", "a live session of yours is already named %q", name)
}

func (s *Service) byKey(ctx context.Context, v *viewer.Viewer, key string) (*ent.Session, error) {
	prior, err := s.Client.Session.Query().Where(session.OwnerID(v.User), session.IdempotencyKey(key)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return prior, err
}

// store writes the session, its kernel, mounts and first history entry.
func (s *Service) store(ctx context.Context, w *wish) (*ent.Session, error) {
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.admit(ctx, tx, w); err != nil {
		return nil, err
	}
	if err := holdMembership(ctx, tx, w); err != nil {
		return nil, err
	}
	if err := holdFolders(ctx, tx, w); err != nil {
		return nil, err
	}
	if err := holdSessionGroup(ctx, tx, w); err != nil {
		return nil, err
	}
	row := w.create(tx)
	if err := s.keep(row, secrets{w.environment, w.bootstrap}); err != nil {
		return nil, err
	}
	sess, err := row.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	if err := tx.Kernel.CreateBulk(w.createKernels(tx, sess.ID)...).Exec(ctx); err != nil {
		return nil, fmt.Errorf("store kernels: %w", err)
	}
	if err := storeNeeded(ctx, tx, sess.ID, w.needed); err != nil {
		return nil, err
	}
	for _, m := range w.mounts {
		if err := tx.SessionMount.Create().SetSessionID(sess.ID).SetVfolderID(m.folder).
			SetTarget(m.target).SetSubpath(m.subpath).SetReadOnly(m.readOnly).SetReadOnlyWanted(m.readOnlyWanted).Exec(ctx); err != nil {
			return nil, fmt.Errorf("store mount %s: %w", m.target, err)
		}
	}
	if err := record(ctx, tx, queued(sess.ID)); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("store session: %w", err)
	}
	s.noteUse(ctx, w)
	return sess.Unwrap(), nil
}

// create is the row of a session, without what is sealed.
func (w *wish) create(tx *ent.Tx) *ent.SessionCreate {
	return tx.Session.Create().
		SetName(w.name).SetType(w.kind).SetPriority(w.priority).SetSlots(w.slots).
		SetCommand(w.command).
		SetShmBytes(w.shmBytes).SetDiskBytes(w.diskBytes).SetNillableIdempotencyKey(w.key).SetNillableKeypairID(w.keypair).
		SetDomainID(w.domain).SetProjectID(w.project).SetOwnerID(w.owner).
		SetResourceGroupID(w.group).SetImageID(w.image.ID).
		SetNillableStartsAt(w.startsAt).SetStrictAgents(w.strict).AddAgentIDs(w.agents...).
		SetNillableLifetime(w.lifetime).SetPreemptible(w.preemptible).SetNillableSessionGroupID(w.together)
}

// createKernels are the rows of its kernels.
func (w *wish) createKernels(tx *ent.Tx, sess uuid.UUID) (list []*ent.KernelCreate) {
	for i := range w.kernels {
		k := tx.Kernel.Create().SetSessionID(sess).SetSlots(w.slots).
			SetDomainID(w.domain).SetProjectID(w.project).SetOwnerID(w.owner)
		role, host := kernelName(i)
		list = append(list, k.SetIndex(i).SetRole(role).SetHostname(host))
	}
	return list
}

// kernelName returns the role and the host name of a session's kernel.
func kernelName(index int) (role kernel.Role, host string) {
	if index == 0 {
		return kernel.RoleMain, "main"
	}
	return kernel.RoleSub, fmt.Sprintf("sub%d", index)
}

// queued is the first entry of a session's history.
func queued(sess uuid.UUID) entry {
	return entry{session: sess, phase: "schedule", to: lifecycle.Pending, result: sessionevent.ResultInfo, attempt: 1, message: "queued"}
}

// holdMembership keeps the owner in the project until the session is there. Who
// asks was read before, and may have left since.
func holdMembership(ctx context.Context, tx *ent.Tx, w *wish) error {
	if !w.member {
		return nil
	}
	held, err := tx.Membership.Query().Where(membership.UserID(w.owner), membership.ProjectID(w.project),
		membership.HasUserWith(user.StatusEQ(user.StatusActive)), membership.HasProjectWith(project.Active(true))).
		ForShare().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("hold membership: %w", err)
	}
	if len(held) == 0 {
		return problem.NotFound("project").WithField("project")
	}
	return nil
}

// holdFolders keeps the folders from being deleted until the session, with
// its mounts, is there for anyone who wants to delete them.
func holdFolders(ctx context.Context, tx *ent.Tx, w *wish) error {
	want := map[uuid.UUID]bool{}
	for _, m := range w.mounts {
		want[m.folder] = true
	}
	if len(want) == 0 {
		return nil
	}
	held, err := tx.Vfolder.Query().
		Where(vfolder.IDIn(store.IDs(want)...), vfolder.StatusEQ(vfolder.StatusReady)).
		Order(vfolder.ByID()).ForShare().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("hold folders: %w", err)
	}
	if len(held) < len(want) {
		return problem.NotFound("folder").WithField("mounts")
	}
	return nil
}

// RenameSession gives a session another name.
func (s *Service) RenameSession(ctx context.Context, in RenameSessionInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := checkName(in.Name); err != nil {
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

// find returns a session to which the viewer may do op.
func (s *Service) find(ctx context.Context, id uuid.UUID, op access.Operation) (*ent.Session, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	sess, err := s.Client.Session.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "session", "id")
	}
	return sess, permit.To(ctx, op, sess)
}

const (
	minName, maxName = 1, 64
	maxBootstrap     = 64 << 10
	maxEnvironment   = 64 << 10
	maxCommand       = 128 << 10
	maxShm           = 1 << 40
	maxMounts        = 64
	maxKey           = 128
	maxKernels       = 29 // for which a session's network has addresses
)

func checkName(name string) error {
	if len(name) < minName || len(name) > maxName {
		return problem.Invalid("name", "must have %d to %d characters", minName, maxName).
			WithLimit(fmt.Sprintf("%d..%d", minName, maxName))
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && (i == 0 || c != '-' && c != '_' && c != '.') {
			return problem.Invalid("name", "may contain letters, digits and, after the first character, dots, dashes and underscores")
		}
	}
	return nil
}

// reserved are targets that would break the container itself.
var reserved = []string{"/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/usr", "/opt/berth", "/run", "/boot"}

func checkTarget(field, target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || strings.ContainsAny(target, "\x00\n") || len(target) > 1024 {
		return problem.Invalid(field, "must be a clean absolute path below /")
	}
	for _, r := range reserved {
		if target == r || strings.HasPrefix(target, r+"/") {
			return problem.Invalid(field, "%s is reserved for the system", r)
		}
	}
	if target == "/home/work" {
		return problem.Invalid(field, "/home/work is the home directory of the session; choose a path below it")
	}
	return nil
}
