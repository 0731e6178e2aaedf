package app

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/appshare"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Place is an app that a viewer has been admitted to.
type Place struct {
	Target
	Session *ent.Session
	Guest   bool // admitted by a share, not because the viewer can enter the session
}

// Over reports whether the session has ended.
func (p *Place) Over() bool { return p.Session.TerminatedAt != nil }

// Running reports whether the session runs.
func (p *Place) Running() bool { return p.Session.Status == lifecycle.Running }

// hidden is the answer for apps that do not exist and for apps of other users, which must not be
// distinguishable.
func hidden() error { return problem.NotFound("app").WithField("app") }

// Admit returns the place of an app if the viewer can open it from an address: because they can enter
// the session, or because the app is shared with them.
func (s *Service) Admit(ctx context.Context, v *viewer.Viewer, from netip.Addr, t Target) (*Place, error) {
	if v == nil || v.IsAnonymous() {
		return nil, problem.Unauthenticated("log in first")
	}
	if v.Actor != uuid.Nil {
		return nil, problem.Forbidden("you cannot open apps while you act as another user")
	}
	if _, err := appstate.CheckTarget(t.App); err != nil {
		return nil, hidden()
	}
	row, err := s.Client.Session.Query().Where(session.ID(t.Session)).WithImage().Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, hidden()
	}
	if err != nil {
		return nil, err
	}
	p := &Place{Target: t, Session: row}
	if e, on, _ := permit.Of(row); v.May(access.Enter, e, on) {
		return p, nil
	}
	p.Guest = true
	open, err := s.shared(ctx, v, from, p)
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, hidden()
	}
	return p, nil
}

// shared reports whether an app is shared with a viewer at an address.
func (s *Service) shared(ctx context.Context, v *viewer.Viewer, from netip.Addr, p *Place) (bool, error) {
	if v.Due != "" || !v.Allows(access.TokenSessions) || v.Within != uuid.Nil && v.Within != p.Session.ProjectID {
		return false, nil
	}
	sh, err := s.Client.AppShare.Query().
		Where(appshare.SessionID(p.Target.Session), appshare.App(p.App), appshare.Kernel(p.Kernel)).Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case expired(sh), !inside(sh.Networks, from):
		return false, nil
	case sh.Audience == access.AppEveryone:
		return true, nil
	case sh.Audience == access.AppPublic:
		_, err := s.AdmitPublic(ctx, from, p.Target)
		if errdefs.IsUnauthorized(err) {
			return false, nil
		}
		return err == nil, err
	}
	return sh.Audience == access.AppProject && v.MemberOf(p.Session.ProjectID), nil
}

// inside reports whether an address is in one of the networks. No networks include all addresses.
func inside(networks []string, from netip.Addr) bool {
	if len(networks) == 0 {
		return true
	}
	return slices.ContainsFunc(networks, func(n string) bool {
		p, err := netip.ParsePrefix(n)
		return err == nil && from.IsValid() && p.Contains(from.Unmap())
	})
}

// Define returns how to start an app of a place, and its port. For an app of the catalogue, it asks
// the container which programs it has.
func (s *Service) Define(ctx context.Context, p *Place) (Definition, error) {
	if port, _ := appstate.CheckTarget(p.App); port > 0 {
		return found(appstate.Port{Port: port}), nil
	}
	var labels map[string]string
	if p.Session.Edges.Image != nil {
		labels = p.Session.Edges.Image.Labels
	}
	if d, ok := named(s.definitions(p.Session, labels, nil), p.App); ok {
		return d, nil
	}
	c, err := s.Reach(ctx, p.Target.Session, p.Kernel)
	if err != nil {
		return Definition{}, err
	}
	survey, err := s.survey(ctx, c.RPC, c.Kernel)
	if err != nil {
		return Definition{}, err
	}
	if d, ok := named(s.definitions(p.Session, labels, survey), p.App); ok {
		return d, nil
	}
	return Definition{}, problem.NotFound("app " + p.App).WithField("app")
}

func named(list []Definition, name string) (Definition, bool) {
	i := slices.IndexFunc(list, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return list[i], true
}

// target returns the target that the arguments of a request name: an app or a port, and a kernel;
// the default is the main kernel.
func (s *Service) target(ctx context.Context, sess uuid.UUID, app *string, port *int, k *uuid.UUID) (Target, error) {
	t := Target{Session: sess}
	switch {
	case (app == nil) == (port == nil):
		return t, problem.Invalid("app", "give either app or port")
	case app != nil:
		t.App = *app
	case *port < 1 || *port > 65535:
		return t, problem.Invalid("port", "%d is not a port", *port).WithLimit("1..65535")
	default:
		t.App = strconv.Itoa(*port)
	}
	if _, err := appstate.CheckTarget(t.App); err != nil {
		return t, problem.Invalid("app", "%v", err)
	}
	if k == nil {
		return t, nil
	}
	row, err := s.Client.Kernel.Query().Where(kernel.ID(*k), kernel.SessionID(sess)).Only(viewer.SystemContext(ctx))
	if err != nil {
		return t, permit.Missing(err, "container", "kernel")
	}
	t.Kernel = row.Index
	return t, nil
}
