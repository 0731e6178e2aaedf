package sshaccess

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/gateway/sshproxy"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// statementTime limits the statements that find a session.
const statementTime = 5 * time.Second

// person is a viewer on one connection. The context has the viewer and the address.
type person struct {
	server *Server
	base   context.Context
	v      *viewer.Viewer
}

func (s *Server) person(ctx context.Context, v *viewer.Viewer) *person {
	return &person{server: s, base: store.StatementTimeout(viewer.With(ctx, v), statementTime), v: v}
}

// ID implements sshproxy.Person.
func (p *person) ID() string { return p.v.Person().String() }

// context returns the person's context, which also ends with ctx.
func (p *person) context(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(p.base)
	stop := context.AfterFunc(ctx, cancel)
	return out, func() { stop(); cancel() }
}

// Enter implements sshproxy.Person. There is no access without an entry in the audit log.
func (p *person) Enter(ctx context.Context, t sshproxy.Target) (sshproxy.Entry, error) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	e := audit.Entry{Action: "enterSession", Entity: access.Session}
	s, err := p.session(ctx, t.Session)
	var in *entry
	if s != nil {
		e.ID = s.ID
	}
	if err == nil {
		in, err = p.enter(ctx, s, t.Kernel)
	}
	if err != nil {
		p.server.cfg.Audit.Denied(ctx, e, err)
		return nil, err
	}
	if err := p.server.cfg.Audit.Require(ctx, e); err != nil {
		return nil, problem.Unavailable("the audit log cannot be written").RetryAfter(time.Second).Because(err)
	}
	in.visit = p.server.cfg.Idle.Enter(ctx, s.ID, false)
	watch, stop := context.WithCancel(p.base)
	in.ended, in.stop = p.server.cfg.Auth.Watch(watch, p.v), stop
	return in, nil
}

// session finds a session by its ID, or the one live session with the name. The person's own
// session takes precedence over sessions of others.
func (p *person) session(ctx context.Context, name string) (*ent.Session, error) {
	if id, err := uuid.Parse(name); err == nil && len(name) == 36 {
		s, err := p.server.cfg.Client.Session.Query().Where(session.ID(id)).Only(ctx)
		if err != nil {
			return nil, permit.Missing(err, "session", "user")
		}
		return s, nil
	}
	live := []predicate.Session{session.Name(name), session.TerminatedAtIsNil(), session.Replaced(false)}
	for _, which := range [][]predicate.Session{append(live, session.OwnerID(p.v.User)), live} {
		found, err := p.server.cfg.Client.Session.Query().Where(which...).Limit(2).All(ctx)
		switch {
		case err != nil:
			return nil, fmt.Errorf("find session: %w", err)
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, problem.Precondition("several sessions are named %s; use the ID of one as the user name", name)
		}
	}
	return nil, problem.NotFound("session " + strconv.Quote(name))
}

// enter checks the permission and finds the kernel.
func (p *person) enter(ctx context.Context, s *ent.Session, name string) (*entry, error) {
	if err := may(ctx, s); err != nil {
		return nil, err
	}
	if name == "" {
		name = "main"
	}
	k, err := s.QueryKernels().Where(kernel.Hostname(name)).First(ctx)
	if err != nil {
		return nil, permit.Missing(err, "kernel "+name, "user")
	}
	if k.AgentID == nil {
		return nil, problem.Precondition("the kernel is %s and not on a machine yet", k.Status)
	}
	// Any user who can enter the session can use the connection to its machine.
	a, err := p.server.cfg.Client.Agent.Get(viewer.SystemContext(ctx), *k.AgentID)
	if err != nil {
		return nil, permit.Missing(err, "machine of the kernel", "user")
	}
	agent, err := p.server.cfg.Agents.Streams(a.Name)
	if err != nil {
		return nil, err
	}
	return &entry{person: p, session: s.ID, kernel: k.ID, agent: agent}, nil
}

// may reports whether the viewer can enter a session now.
func may(ctx context.Context, s *ent.Session) error {
	if err := permit.To(ctx, access.Enter, s); err != nil {
		return err
	}
	if s.Status != lifecycle.Running {
		return problem.Precondition("session %s is %s, not running", s.Name, s.Status)
	}
	return nil
}

// entry is a person in a kernel.
type entry struct {
	person          *person
	session, kernel uuid.UUID
	agent           portstream.Opener
	visit           *idle.Connection
	ended           <-chan struct{}
	stop            context.CancelFunc
}

// Open implements sshproxy.Entry.
func (e *entry) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	stream, err := portstream.DialSSH(ctx, e.agent, e.kernel)
	if err != nil {
		return nil, problem.Unavailable("the machine of the session cannot be reached").Because(err)
	}
	return stream, nil
}

// Check implements sshproxy.Entry.
func (e *entry) Check(ctx context.Context) error {
	select {
	case <-e.ended:
		return problem.Unauthenticated("your login has ended, or your permissions have changed; connect again")
	default:
	}
	ctx, cancel := e.person.context(ctx)
	defer cancel()
	s, err := e.person.server.cfg.Client.Session.Query().Where(session.ID(e.session)).Only(ctx)
	if err != nil {
		return permit.Missing(err, "session", "user")
	}
	return may(ctx, s)
}

// Ended implements sshproxy.Entry.
func (e *entry) Ended() <-chan struct{} { return e.ended }

// Moved implements sshproxy.Entry.
func (e *entry) Moved() { e.visit.Moved() }

// Leave implements sshproxy.Entry.
func (e *entry) Leave() {
	e.stop()
	e.visit.Leave()
}
