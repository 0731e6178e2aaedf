package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/syntax"
)

// sessionSpec is a request that has been checked and completed.
type sessionSpec struct {
	resolved
	owner       uuid.UUID
	name        string
	kind        session.Type
	command     []string
	bootstrap   string
	environment map[string]string
	apps        []appstate.App
	priority    int
	shmBytes    int64
	diskBytes   int64 // of each kernel
	key         *string
	startsAt    *time.Time
	lifetime    *int // seconds
	preemptible bool
	autoMount   bool
	tags        []string
	stored      bool         // the session is already pending
	restarts    *ent.Session // that the session replaces
	member      *member      // of an array
}

// resolved are the rows that a request refers to, and values derived from them.
type resolved struct {
	project, domain uuid.UUID
	belongs         bool        // the owner belongs to the project; without it, a role lets them start sessions
	groups          []uuid.UUID // among which group is chosen
	group           uuid.UUID
	image           *ent.Image
	slots           resource.Slots // of each kernel
	kernels         int
	mounts          []mount
	needed          []needed       // that must succeed first
	agents          []uuid.UUID    // to run on
	strict          bool           // on these agents or nowhere
	together        *uuid.UUID     // the session group
	keypair         *uuid.UUID     // of the request
	limits          []policy.Limit // that apply to the session
	budgets         []uuid.UUID    // that apply to it, with a hard limit
}

type mount struct {
	folder   uuid.UUID
	target   string
	subpath  string
	readOnly bool
	// readOnlyWanted: the request wanted readOnly, whether or not its owner can write
	readOnlyWanted bool
}

const defaultPriority = 10

// inspection checks a part of an input and stores the result in the spec.
type inspection = func(context.Context, *viewer.Viewer, CreateSessionInput, *sessionSpec) error

func newSpec(v *viewer.Viewer, in CreateSessionInput) *sessionSpec {
	spec := &sessionSpec{owner: v.User, command: in.Command, environment: in.Environment, priority: defaultPriority, key: in.IdempotencyKey}
	spec.autoMount = in.AutoMount == nil || *in.AutoMount
	spec.kind = session.TypeInteractive
	if len(in.Command) > 0 {
		spec.kind = session.TypeBatch
	}
	if in.Type != nil {
		spec.kind = *in.Type
	}
	return spec
}

// check turns an input into a spec, or returns an error that names the wrong field.
func (s *Service) check(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (*sessionSpec, error) {
	spec := newSpec(v, in)
	for _, do := range []inspection{checkBasics, checkTimes, checkApps, checkTags} {
		if err := do(ctx, v, in, spec); err != nil {
			return nil, err
		}
	}
	found, err := s.resolver.resolve(ctx, v, references(in, spec.kind))
	if err != nil {
		return nil, err
	}
	spec.resolved = *found
	return spec, s.checkDisk(ctx, v, in, spec)
}

// CheckSaved checks a request that is to be saved, as far as that needs no rows.
func CheckSaved(in CreateSessionInput) error {
	switch {
	case in.IdempotencyKey != nil:
		return problem.Invalid("idempotencyKey", "cannot be saved")
	case in.From != nil:
		return problem.Invalid("from", "cannot be saved")
	case in.Template != nil:
		return problem.Invalid("template", "cannot be saved")
	case in.Image == "":
		return problem.Invalid("image", "must be given")
	case in.Slots == nil:
		return problem.Invalid("slots", "must be given")
	case len(in.Mounts) > maxMounts:
		return problem.Invalid("mounts", "has %d folders, which is too many", len(in.Mounts)).WithLimit(fmt.Sprint(maxMounts))
	case len(in.DependsOn) > maxNeeded:
		return problem.Invalid("dependsOn", "has %d sessions, which is too many", len(in.DependsOn)).WithLimit(fmt.Sprint(maxNeeded))
	case len(in.Agents) > maxAgents:
		return problem.Invalid("agents", "has %d agents, which is too many", len(in.Agents)).WithLimit(fmt.Sprint(maxAgents))
	}
	spec := newSpec(&viewer.Viewer{}, in)
	for _, do := range []inspection{checkBasics, checkTimes, checkApps, checkTags} {
		if err := do(context.Background(), nil, in, spec); err != nil {
			return err
		}
	}
	return nil
}

// checkBasics checks the fields that refer to no row.
func checkBasics(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.name = "session-" + strings.ToLower(rand.Text()[:8])
	if in.Name != nil {
		spec.name = *in.Name
	}
	if err := syntax.Name(spec.name); err != nil {
		return err
	}
	if spec.kind == session.TypeBatch && len(in.Command) == 0 {
		return problem.Invalid("command", "must not be empty for a batch session")
	}
	if spec.kind == session.TypeInference && !in.Replica {
		return problem.Invalid("type", "sessions of this type are replicas, which deployments create")
	}
	if spec.command == nil {
		spec.command = []string{}
	}
	for i, arg := range spec.command {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			return problem.Invalid(fmt.Sprintf("command[%d]", i), "must not be empty or contain a zero byte")
		}
	}
	if spec.key != nil && (*spec.key == "" || len(*spec.key) > maxKey || strings.ContainsRune(*spec.key, 0)) {
		return problem.Invalid("idempotencyKey", "must have 1 to %d bytes", maxKey).WithLimit(fmt.Sprintf("1..%d", maxKey))
	}
	if n := syntax.Bytes(in.Command); n > syntax.MaxCommand {
		return problem.Invalid("command", "has %d bytes", n).WithLimit(fmt.Sprint(syntax.MaxCommand))
	}
	if in.BootstrapScript != nil {
		spec.bootstrap = *in.BootstrapScript
	}
	if len(spec.bootstrap) > maxBootstrap || strings.ContainsRune(spec.bootstrap, 0) {
		return problem.Invalid("bootstrapScript", "must be text of at most 64 KiB").WithLimit(fmt.Sprint(maxBootstrap))
	}
	if in.Priority != nil {
		spec.priority = *in.Priority
	}
	if spec.priority < 0 || spec.priority > 100 {
		return problem.Invalid("priority", "%d is not between 0 and 100", spec.priority).WithLimit("0..100")
	}
	if in.ShmBytes != nil {
		spec.shmBytes = *in.ShmBytes
	}
	if spec.shmBytes < 0 || spec.shmBytes > maxShm {
		return problem.Invalid("shmBytes", "must be between 0 and 1 TiB").WithLimit(fmt.Sprint(int64(maxShm)))
	}
	if spec.environment == nil {
		spec.environment = map[string]string{}
	}
	return syntax.Environment(spec.environment)
}

const (
	maxAhead    = 365 * 24 * time.Hour // of a start
	minLifetime = 60                   // seconds
	maxLifetime = 365 * 24 * 3600
)

// checkTimes checks when a session can start, and for how long it can run.
func checkTimes(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.lifetime, spec.preemptible = in.Lifetime, in.Preemptible != nil && *in.Preemptible
	if l := in.Lifetime; l != nil && (*l < minLifetime || *l > maxLifetime) {
		return problem.Invalid("lifetime", "must be %d to %d seconds", minLifetime, maxLifetime).
			WithLimit(fmt.Sprintf("%d..%d", minLifetime, maxLifetime))
	}
	if in.StartsAt == nil {
		return nil
	}
	if spec.kind != session.TypeBatch {
		return problem.Invalid("startsAt", "only a batch session can start later")
	}
	now := clock.Now()
	if !in.StartsAt.After(now) || in.StartsAt.After(now.Add(maxAhead)) {
		return problem.Invalid("startsAt", "must be in the future, at most 365 days ahead").WithLimit(now.Add(maxAhead).Format(time.RFC3339))
	}
	at := in.StartsAt.UTC().Truncate(time.Microsecond)
	spec.startsAt = &at
	return nil
}

// checkApps checks the apps of a request.
func checkApps(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.apps = make([]appstate.App, len(in.Apps))
	for i, a := range in.Apps {
		spec.apps[i] = appstate.App{Name: a.Name, Port: a.Port, Command: a.Command, Environment: a.Environment}
		if a.Title != nil {
			spec.apps[i].Title = *a.Title
		}
	}
	return syntax.Apps(spec.apps)
}

// checkTags checks the tags of a request.
func checkTags(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.tags = in.Tags
	if spec.tags == nil {
		spec.tags = []string{}
	}
	return syntax.Tags(in.Tags)
}
