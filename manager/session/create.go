package session

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// MountInput names a folder and its path in a session.
type MountInput struct {
	Vfolder  string // id or name
	Target   *string
	Subpath  *string
	ReadOnly *bool
}

// CreateSessionInput is the request of a user.
type CreateSessionInput struct {
	From            *uuid.UUID // a session whose request provides the fields that are not set
	Template        *uuid.UUID // a template that provides them
	Name            *string
	Image           string
	Type            *session.Type
	Slots           resource.Slots // of each kernel
	Kernels         *int
	Command         []string
	BootstrapScript *string
	Environment     map[string]string
	Apps            []AppInput
	Mounts          []MountInput
	AutoMount       *bool // false: without the folders that are mounted automatically
	Project         *uuid.UUID
	ResourceGroup   *uuid.UUID
	Priority        *int
	StartsAt        *time.Time
	DependsOn       []uuid.UUID
	Agents          []uuid.UUID
	StrictAgents    *bool
	Lifetime        *int // seconds
	Preemptible     *bool
	SessionGroup    *uuid.UUID
	ShmBytes        *int64
	DiskBytes       *int64 // of each kernel
	Tags            []string
	IdempotencyKey  *string
}

// TerminateSessionInput names the session to end.
type TerminateSessionInput struct {
	ID    uuid.UUID
	Force *bool
}

// RenameSessionInput is the new name of a session.
type RenameSessionInput struct {
	ID   uuid.UUID
	Name string
}

// UpdatePendingSessionInput changes the request of a pending session; nil fields stay unchanged.
type UpdatePendingSessionInput struct {
	ID            uuid.UUID
	Slots         resource.Slots
	ResourceGroup *uuid.UUID
	StrictAgents  *bool
}

// SessionPayload is the result of mutations of a session.
type SessionPayload struct {
	Session *ent.Session
}

// CreateSession checks a request, stores the session as pending and wakes the scheduler.
// A second request with the same idempotency key returns the session of the first one.
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
	if in, err = s.complete(ctx, v, in); err != nil {
		return nil, err
	}
	spec, err := s.check(ctx, v, in)
	if err != nil {
		return nil, err
	}
	stored, err := s.storer.store(ctx, []*sessionSpec{spec})
	if sqlgraph.IsUniqueConstraintError(err) && in.IdempotencyKey != nil {
		// A concurrent request with the same key was faster; its session answers both.
		if prior, keyErr := s.byKey(ctx, v, *in.IdempotencyKey); prior != nil {
			return &SessionPayload{Session: prior}, keyErr
		}
	}
	if sqlgraph.IsUniqueConstraintError(err) {
		return nil, nameTaken(spec.name)
	}
	if err != nil {
		return nil, err
	}
	created := stored[0]
	s.meter.Created.Inc()
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

// RenameSession changes the name of a session.
func (s *Service) RenameSession(ctx context.Context, in RenameSessionInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := CheckName(in.Name); err != nil {
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

// find returns a session if the viewer is allowed to do op with it.
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
	maxKernels       = 29 // the number of addresses in the network of a session
)

// CheckName checks the name of a session, or of an object with the same rules for names.
func CheckName(name string) error {
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

// reserved are mount targets that would break the container.
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
