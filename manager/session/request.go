package session

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiondependency"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/secrets"
)

// Templates finds saved requests.
type Templates interface {
	// Launch returns the request of a template that the viewer can use.
	Launch(ctx context.Context, id uuid.UUID) (CreateSessionInput, error)
}

// Requests returns the requests of sessions in the form that createSession accepts, for those of
// the ids that the viewer can see and enter, because a user who can enter a session can read its
// environment there.
func (s *Service) Requests(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*CreateSessionInput, error) {
	seen, err := s.Client.Session.Query().Where(session.IDIn(ids...)).
		Select(session.FieldID, session.FieldOwnerID, session.FieldProjectID, session.FieldDomainID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	var open []uuid.UUID
	for _, row := range seen {
		if e, on, _ := permit.Of(row); viewer.From(ctx).May(access.Enter, e, on) {
			open = append(open, row.ID)
		}
	}
	out := make(map[uuid.UUID]*CreateSessionInput, len(open))
	if len(open) == 0 {
		return out, nil
	}
	rows, err := s.Client.Session.Query().Where(session.IDIn(open...)).WithImage().WithAgents().
		WithKernels(func(q *ent.KernelQuery) { q.Select(kernel.FieldID, kernel.FieldSessionID) }).
		WithMounts(func(q *ent.SessionMountQuery) { q.WithVfolder().Order(sessionmount.ByID()) }).
		WithDependsOn(func(q *ent.SessionDependencyQuery) {
			q.Where(sessiondependency.Satisfied(false)).Order(sessiondependency.ByID())
		}).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read requests of sessions: %w", err)
	}
	for _, row := range rows {
		if out[row.ID], err = s.requestOf(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Environment returns the requested variables with their values. The caller has checked that the
// viewer can enter the session.
func (s *Service) Environment(row *ent.Session) (map[string]string, error) {
	x, err := secrets.Open(s.Keys, row)
	if x.Environment == nil {
		x.Environment = map[string]string{}
	}
	return x.Environment, err
}

// requestOf returns the request of a row with its edges.
func (s *Service) requestOf(row *ent.Session) (*CreateSessionInput, error) {
	secret, err := secrets.Open(s.Keys, row)
	if err != nil {
		return nil, err
	}
	apps, err := secrets.Apps(s.Keys, row)
	if err != nil {
		return nil, err
	}
	e := row.Edges
	in := &CreateSessionInput{
		Name: &row.Name, Image: e.Image.Reference, Type: &row.Type, Slots: row.Slots, Command: row.Command, Environment: secret.Environment,
		AutoMount: &row.AutoMount, Project: &row.ProjectID, ResourceGroup: &row.ResourceGroupID, Priority: &row.Priority,
		StartsAt: row.StartsAt, Lifetime: row.Lifetime, SessionGroup: row.SessionGroupID, Tags: row.Tags,
	}
	if n := len(e.Kernels); n > 1 {
		in.Kernels = &n
	}
	if secret.BootstrapScript != "" {
		in.BootstrapScript = &secret.BootstrapScript
	}
	if row.Preemptible {
		in.Preemptible = &row.Preemptible
	}
	if row.ShmBytes > 0 {
		in.ShmBytes = &row.ShmBytes
	}
	if row.DiskBytes > 0 && row.DiskBytes != policy.DefaultDiskBytes {
		in.DiskBytes = &row.DiskBytes
	}
	for _, a := range apps {
		in.Apps = append(in.Apps, AppInput{Name: a.Name, Title: some(a.Title), Port: a.Port, Command: a.Command, Environment: a.Environment})
	}
	for _, m := range e.Mounts {
		if !row.AutoMount || !automatic(m) {
			in.Mounts = append(in.Mounts, mountOf(m))
		}
	}
	for _, a := range e.Agents {
		in.Agents = append(in.Agents, a.ID)
	}
	if len(in.Agents) > 0 {
		in.StrictAgents = &row.StrictAgents
	}
	for _, d := range e.DependsOn {
		for _, needed := range []*uuid.UUID{d.NeededID, d.NeededArrayID} {
			if needed != nil {
				in.DependsOn = append(in.DependsOn, *needed)
			}
		}
	}
	return in, nil
}

// automatic reports whether a session that mounts folders automatically would get a mount without a
// request for it.
func automatic(m *ent.SessionMount) bool {
	f := m.Edges.Vfolder
	return f != nil && strings.HasPrefix(f.Name, ".") && m.Target == "/home/work/"+f.Name && m.Subpath == "" && !m.ReadOnlyWanted
}

func mountOf(m *ent.SessionMount) MountInput {
	in := MountInput{Vfolder: m.VfolderID.String(), Target: &m.Target, Subpath: some(m.Subpath)}
	if m.ReadOnlyWanted {
		in.ReadOnly = &m.ReadOnlyWanted
	}
	return in
}

func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// complete adds the fields that an input takes from another session or from a template.
func (s *Service) complete(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (CreateSessionInput, error) {
	var base CreateSessionInput
	switch {
	case in.From != nil && in.Template != nil:
		return in, problem.Invalid("template", "cannot be combined with from")
	case in.From != nil:
		from, err := s.cloned(ctx, v, *in.From)
		if err != nil {
			return in, err
		}
		base = *from
	case in.Template != nil:
		if s.Templates == nil {
			return in, problem.NotFound("template").WithField("template")
		}
		var err error
		if base, err = s.Templates.Launch(ctx, *in.Template); err != nil {
			return in, err
		}
	case in.Image == "":
		return in, problem.Invalid("image", "must be given, unless from or template names a request")
	case in.Slots == nil:
		return in, problem.Invalid("slots", "must be given, unless from or template names a request")
	default:
		return in, nil
	}
	return Over(base, in), nil
}

// cloned returns the request of a session that the viewer can enter, without the fields that only
// that session can have.
func (s *Service) cloned(ctx context.Context, v *viewer.Viewer, id uuid.UUID) (*CreateSessionInput, error) {
	row, err := s.Client.Session.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "session", "from")
	}
	found, err := s.Requests(ctx, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	base := found[id]
	if base == nil {
		return nil, problem.Forbidden("you may not enter session %s, so you cannot read its request", row.Name).WithField("from")
	}
	base.Name = nil
	if base.StartsAt != nil && !base.StartsAt.After(clock.Now()) {
		base.StartsAt = nil
	}
	if row.OwnerID != v.User {
		base.SessionGroup = nil // it is the owner's
	}
	return base, nil
}

// Over returns a request with the fields that in has: slots and environment variables are
// merged, and other fields replaced.
func Over(base, in CreateSessionInput) CreateSessionInput {
	out := base
	out.From, out.Template, out.IdempotencyKey = nil, nil, in.IdempotencyKey
	out.Slots = resource.Slots{}
	for _, from := range []resource.Slots{base.Slots, in.Slots} {
		maps.Copy(out.Slots, from)
	}
	maps.DeleteFunc(out.Slots, func(_ string, amount int64) bool { return amount == 0 })
	out.Environment = map[string]string{}
	maps.Copy(out.Environment, base.Environment)
	maps.Copy(out.Environment, in.Environment)
	if in.Image != "" {
		out.Image = in.Image
	}
	replace(&out.Name, in.Name)
	replace(&out.Type, in.Type)
	replace(&out.Kernels, in.Kernels)
	replaceList(&out.Command, in.Command)
	replace(&out.BootstrapScript, in.BootstrapScript)
	replaceList(&out.Apps, in.Apps)
	replaceList(&out.Mounts, in.Mounts)
	replace(&out.AutoMount, in.AutoMount)
	replace(&out.Project, in.Project)
	replace(&out.ResourceGroup, in.ResourceGroup)
	replace(&out.Priority, in.Priority)
	replace(&out.StartsAt, in.StartsAt)
	replaceList(&out.DependsOn, in.DependsOn)
	replaceList(&out.Agents, in.Agents)
	replace(&out.StrictAgents, in.StrictAgents)
	replace(&out.Lifetime, in.Lifetime)
	replace(&out.Preemptible, in.Preemptible)
	replace(&out.SessionGroup, in.SessionGroup)
	replace(&out.ShmBytes, in.ShmBytes)
	replace(&out.DiskBytes, in.DiskBytes)
	replaceList(&out.Tags, in.Tags)
	return out
}

func replace[T any](to *(*T), value *T) {
	if value != nil {
		*to = value
	}
}

// replaceList replaces a list; an empty one that is given empties it.
func replaceList[T any](to *[]T, list []T) {
	if list != nil {
		*to = list
	}
}
