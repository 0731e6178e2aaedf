package session

import (
	"context"
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

// AppInput describes an app of a session: a program that listens on a loopback port.
type AppInput struct {
	Name        string
	Title       *string
	Port        int
	Command     []string // nil: the session itself starts it, or the catalogue knows how
	Environment map[string]string
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
	// Replica says that package deployment requests the session. It is not part of the API.
	Replica bool `json:"-"`
}

// TerminateSessionInput names the session to end.
type TerminateSessionInput struct {
	ID    uuid.UUID
	Force *bool
	// Why is for the history if the platform ends the session, and not its user. It is not part of the API.
	Why string `json:"-"`
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
	maxBootstrap = 64 << 10
	maxShm       = 1 << 40
	maxMounts    = 64
	maxKey       = 128
	maxKernels   = 29 // the number of addresses in the network of a session
)
