package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	msession "github.com/berthhq/berth/manager/session"
)

// AppSource is the origin of an app.
type AppSource string

// The sources.
const (
	SourceSession   AppSource = "SESSION"
	SourceImage     AppSource = "IMAGE"
	SourceCatalogue AppSource = "CATALOGUE"
	SourceFound     AppSource = "FOUND"
)

// AppStatus is the state of an app.
type AppStatus string

// The statuses.
const (
	StatusStopped  AppStatus = "STOPPED"
	StatusStarting AppStatus = "STARTING"
	StatusRunning  AppStatus = "RUNNING"
	StatusFailed   AppStatus = "FAILED"
)

// Definition is an app that a session can have.
type Definition struct {
	appstate.App
	Source AppSource
}

// Startable reports whether it can be started on demand.
func (d Definition) Startable() bool { return len(d.Command) > 0 }

// App is an app of a kernel with its status.
type App struct {
	Name, Title string
	KernelID    uuid.UUID
	Port        int
	Source      AppSource
	Status      AppStatus
	Reason      string
	Startable   bool
	Sharing     *ent.AppShare
}

// surveyTogether limits the containers that one request asks at the same time.
const surveyTogether = 8

// List returns the apps of the main kernels of those sessions that the viewer can enter, with their
// live status, by session.
func (s *Service) List(ctx context.Context, sessions []uuid.UUID) (map[uuid.UUID][]*App, error) {
	return s.list(ctx, session.IDIn(sessions...), kernel.Index(0))
}

// Of returns the apps of one kernel of a session.
func (s *Service) Of(ctx context.Context, sess, k uuid.UUID) ([]*App, error) {
	m, err := s.list(ctx, session.ID(sess), kernel.ID(k))
	return m[sess], err
}

func (s *Service) list(ctx context.Context, which predicate.Session, of predicate.Kernel) (map[uuid.UUID][]*App, error) {
	v := viewer.From(ctx)
	rows, err := s.Client.Session.Query().Where(which, session.TerminatedAtIsNil()).WithImage().WithAppShares().
		WithKernels(func(q *ent.KernelQuery) { q.Where(of).WithAgent() }).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read sessions with their apps: %w", err)
	}
	out := map[uuid.UUID][]*App{}
	var mu sync.Mutex
	g := errgroup.Group{}
	g.SetLimit(surveyTogether)
	for _, row := range rows {
		if e, on, _ := permit.Of(row); !v.May(access.Enter, e, on) {
			continue
		}
		for _, k := range row.Edges.Kernels {
			g.Go(func() error {
				apps := s.ofKernel(ctx, row, k)
				mu.Lock()
				defer mu.Unlock()
				out[row.ID] = append(out[row.ID], apps...)
				return nil
			})
		}
	}
	return out, g.Wait()
}

// ofKernel returns the apps of a kernel with their status. A container that does not answer has the
// apps that are known without it, with the reason.
func (s *Service) ofKernel(ctx context.Context, row *ent.Session, k *ent.Kernel) []*App {
	var survey *appstate.Survey
	reason := ""
	if row.Status == lifecycle.Running {
		rpc, err := s.rpc(k)
		if err == nil {
			survey, err = s.survey(ctx, rpc, k.ID)
		}
		if err != nil {
			s.Logger.WarnContext(ctx, "survey apps", "kernel", k.ID, "error", err)
			survey, reason = nil, "the container does not answer"
		}
	}
	var apps []*App
	for _, d := range s.definitions(row, survey) {
		a := &App{Name: d.Name, Title: cmp.Or(d.Title, d.Name), KernelID: k.ID, Port: d.Port, Source: d.Source, Startable: d.Startable(), Reason: reason}
		a.Status = StatusStopped
		if survey != nil {
			a.Status, a.Reason = statusOf(d, survey)
		}
		apps = append(apps, a)
	}
	for _, a := range apps {
		i := slices.IndexFunc(row.Edges.AppShares, func(sh *ent.AppShare) bool {
			return sh.App == a.Name && sh.Kernel == k.Index && !expired(sh)
		})
		if i >= 0 {
			a.Sharing = row.Edges.AppShares[i]
		}
	}
	return apps
}

// definitions returns the apps of a session: requested ones replace those of the image, which replace
// those of the catalogue. Ports that none of them has come last. The catalogue and the ports need a
// survey.
func (s *Service) definitions(row *ent.Session, survey *appstate.Survey) []Definition {
	var out []Definition
	add := func(d Definition) {
		if !slices.ContainsFunc(out, func(o Definition) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	requested, err := msession.Apps(s.Keys, row)
	if err != nil {
		s.Logger.Error("read the apps of a session", "session", row.ID, "error", err)
	}
	for _, a := range requested {
		if e := s.known(a.Name); e != nil && len(a.Command) == 0 {
			a.Command, a.Title = e.Command, cmp.Or(a.Title, e.Title)
		}
		add(Definition{App: a, Source: SourceSession})
	}
	if row.Edges.Image != nil {
		for _, d := range s.labelled(row.Edges.Image.Labels) {
			add(d)
		}
	}
	if survey == nil {
		return out
	}
	for _, e := range s.catalogue {
		if !slices.ContainsFunc(e.Needs, func(p string) bool { return survey.Found[p] == "" }) {
			add(e.definition())
		}
	}
	for _, p := range survey.Ports {
		if !slices.ContainsFunc(out, func(d Definition) bool { return d.Port == p.Port }) {
			add(found(p))
		}
	}
	return out
}

// known returns the entry of the catalogue with a name, or nil.
func (s *Service) known(name string) *entry {
	i := slices.IndexFunc(s.catalogue, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &s.catalogue[i]
}

func found(p appstate.Port) Definition {
	d := Definition{Source: SourceFound}
	d.Name, d.Port, d.Title = strconv.Itoa(p.Port), p.Port, "Port "+strconv.Itoa(p.Port)
	if p.Program != "" {
		d.Title += " (" + p.Program + ")"
	}
	return d
}

// statusOf compares an app with what its container says.
func statusOf(d Definition, survey *appstate.Survey) (AppStatus, string) {
	if slices.ContainsFunc(survey.Ports, func(p appstate.Port) bool { return p.Port == d.Port }) {
		return StatusRunning, ""
	}
	i := slices.IndexFunc(survey.Apps, func(st appstate.State) bool { return st.Name == d.Name })
	switch {
	case i < 0 || survey.Apps[i].Started.IsZero():
		return StatusStopped, ""
	case survey.Apps[i].Running:
		return StatusStarting, ""
	case survey.Apps[i].Exit == 0 || survey.Apps[i].Exit == stoppedByUs:
		return StatusStopped, ""
	}
	return StatusFailed, survey.Apps[i].Reason
}

// stoppedByUs is the exit code of a program that SIGTERM ended, as Stop does.
const stoppedByUs = 128 + 15

func expired(sh *ent.AppShare) bool { return sh.ExpiresAt != nil && !sh.ExpiresAt.After(clock.Now()) }
