package app

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/appshare"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/permit"
)

// AppActionInput names an app.
type AppActionInput struct {
	Session uuid.UUID
	App     string
	Kernel  *uuid.UUID
}

// ShareAppInput names an app and who can open it.
type ShareAppInput struct {
	Session   uuid.UUID
	App       string
	Kernel    *uuid.UUID
	Audience  access.AppAudience
	ExpiresAt *time.Time
	Networks  []string
}

// AppPayload has an app after a change.
type AppPayload struct{ App *App }

const (
	maxNetworks = 32
	maxTail     = 512 << 10
)

// enter returns the place of an app of a session that the viewer can enter. A guest of a shared app
// cannot change it.
func (s *Service) enter(ctx context.Context, sess uuid.UUID, app string, k *uuid.UUID) (*Place, error) {
	t, err := s.target(ctx, sess, &app, nil, k)
	if err != nil {
		return nil, err
	}
	p, err := s.Admit(ctx, viewer.From(ctx), auth.AddressFrom(ctx), t)
	if err != nil {
		return nil, err
	}
	if p.Guest {
		return nil, problem.Forbidden("only users who can enter the session can change its apps")
	}
	if p.Over() {
		return nil, problem.Precondition("session %s has ended", p.Session.Name)
	}
	return p, permit.To(ctx, access.Enter, p.Session)
}

// reach returns the place of an app like enter, and its container, which must run.
func (s *Service) reach(ctx context.Context, sess uuid.UUID, app string, of *uuid.UUID) (*Place, uuid.UUID, agentpb.AgentClient, error) {
	p, err := s.enter(ctx, sess, app, of)
	if err != nil {
		return nil, uuid.Nil, nil, err
	}
	if !p.Running() {
		return nil, uuid.Nil, nil, problem.Precondition("session %s is %s, not running", p.Session.Name, p.Session.Status)
	}
	c, err := s.Reach(ctx, sess, p.Kernel)
	if err != nil {
		return nil, uuid.Nil, nil, err
	}
	return p, c.Kernel, c.RPC, nil
}

// RestartApp ends an app if it runs, and starts it.
func (s *Service) RestartApp(ctx context.Context, in AppActionInput) (*AppPayload, error) {
	p, k, rpc, err := s.reach(ctx, in.Session, in.App, in.Kernel)
	if err != nil {
		return nil, err
	}
	d, err := s.Define(ctx, p)
	if err != nil {
		return nil, err
	}
	if !d.Startable() {
		return nil, problem.Precondition("app %s has no command; start it in the session", d.Name)
	}
	if _, err := s.Stop(ctx, rpc, k, d.Name); err != nil {
		return nil, err
	}
	if _, err := s.Start(ctx, rpc, k, d, s.Prefix(p.Target)); err != nil {
		return nil, err
	}
	return s.payload(ctx, p, k)
}

// StopApp ends an app that was started on demand.
func (s *Service) StopApp(ctx context.Context, in AppActionInput) (*AppPayload, error) {
	p, k, rpc, err := s.reach(ctx, in.Session, in.App, in.Kernel)
	if err != nil {
		return nil, err
	}
	if _, err := s.Stop(ctx, rpc, k, p.App); err != nil {
		return nil, err
	}
	return s.payload(ctx, p, k)
}

// Log returns the end of the output of an app.
func (s *Service) Log(ctx context.Context, in AppActionInput, bytes int) (string, error) {
	if bytes < 1 || bytes > maxTail {
		return "", problem.Invalid("bytes", "must be from 1 to %d", maxTail).WithLimit(strconv.Itoa(maxTail))
	}
	p, k, rpc, err := s.reach(ctx, in.Session, in.App, in.Kernel)
	if err != nil {
		return "", err
	}
	return s.Tail(ctx, rpc, k, p.App, bytes)
}

// payload returns the current state of an app.
func (s *Service) payload(ctx context.Context, p *Place, k uuid.UUID) (*AppPayload, error) {
	list, err := s.Of(ctx, p.Target.Session, k)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(a *App) bool { return a.Name == p.App })
	if i < 0 { // an app that is not in any list, or a port without a listener
		port, _ := strconv.Atoi(p.App)
		at, err := s.portOf(ctx, p.Target)
		if err != nil {
			return nil, err
		}
		return &AppPayload{&App{Name: p.App, Title: p.App, KernelID: k, Port: port, Source: SourceFound, Status: StatusStopped, Address: s.Address(p.Target, at)}}, nil
	}
	return &AppPayload{list[i]}, nil
}

// ShareApp lets other users open an app, or changes who can.
func (s *Service) ShareApp(ctx context.Context, in ShareAppInput) (*AppPayload, error) {
	p, err := s.enter(ctx, in.Session, in.App, in.Kernel)
	if err != nil {
		return nil, err
	}
	networks, err := parseNetworks(in.Networks)
	if err != nil {
		return nil, err
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(clock.Now()) {
		return nil, problem.Invalid("expiresAt", "%s is in the past", in.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if in.Audience == access.AppPublic {
		if in.ExpiresAt, err = s.publicEnd(ctx, p.Session, in.ExpiresAt); err != nil {
			return nil, err
		}
		if err := s.settle(ctx, p); err != nil {
			return nil, err
		}
	}
	id, err := s.kernelOf(ctx, p)
	if err != nil {
		return nil, err
	}
	create := s.Client.AppShare.Create().SetSessionID(in.Session).SetApp(p.App).SetKernel(p.Kernel).SetAudience(in.Audience).
		SetNetworks(networks).SetNillableExpiresAt(in.ExpiresAt).SetCreatorID(viewer.From(ctx).User)
	err = create.OnConflictColumns(appshare.FieldSessionID, appshare.FieldApp, appshare.FieldKernel).Update(func(u *ent.AppShareUpsert) {
		u.UpdateAudience().UpdateNetworks().UpdateCreatorID()
		if in.Audience == access.AppPublic { // the time is relative
			u.SetExcluded(appshare.FieldCreatedAt)
		}
		if in.ExpiresAt == nil {
			u.ClearExpiresAt()
		} else {
			u.UpdateExpiresAt()
		}
	}).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("share app %s: %w", p.App, err)
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Session, ID: in.Session}) // gateways check open entries again
	return s.payload(ctx, p, id)
}

// UnshareApp ends the sharing of an app.
func (s *Service) UnshareApp(ctx context.Context, in AppActionInput) (*AppPayload, error) {
	p, err := s.enter(ctx, in.Session, in.App, in.Kernel)
	if err != nil {
		return nil, err
	}
	id, err := s.kernelOf(ctx, p)
	if err != nil {
		return nil, err
	}
	_, err = s.Client.AppShare.Delete().
		Where(appshare.SessionID(in.Session), appshare.App(p.App), appshare.Kernel(p.Kernel)).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("unshare app %s: %w", p.App, err)
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Session, ID: in.Session})
	return s.payload(ctx, p, id)
}

// kernelOf returns the kernel of a place, or the zero id if the session has none yet.
func (s *Service) kernelOf(ctx context.Context, p *Place) (uuid.UUID, error) {
	id, err := p.Session.QueryKernels().Where(kernel.Index(p.Kernel)).OnlyID(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return uuid.Nil, nil
	}
	return id, err
}

// parseNetworks returns networks in their usual form. An address stands for itself.
func parseNetworks(list []string) ([]string, error) {
	if len(list) > maxNetworks {
		return nil, problem.Invalid("networks", "has %d networks", len(list)).WithLimit(strconv.Itoa(maxNetworks))
	}
	out := []string{}
	for i, text := range list {
		p, err := netip.ParsePrefix(text)
		if a, aerr := netip.ParseAddr(text); aerr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, problem.Invalid(fmt.Sprintf("networks[%d]", i), "%q is not a network such as 10.1.0.0/16", text)
		}
		out = append(out, p.Masked().String())
	}
	return out, nil
}
