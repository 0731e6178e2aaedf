package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session/secrets"
)

// AppSource is the origin of an app.
type AppSource string

// The sources.
const (
	SourceSession   AppSource = "session"
	SourceImage     AppSource = "image"
	SourceCatalogue AppSource = "catalogue"
	SourceFound     AppSource = "found"
)

// AppStatus is the state of an app.
type AppStatus string

// The statuses.
const (
	StatusStopped  AppStatus = "stopped"
	StatusStarting AppStatus = "starting"
	StatusRunning  AppStatus = "running"
	StatusFailed   AppStatus = "failed"
)

// Definition is an app that a session can have.
type Definition struct {
	appstate.App
	Source AppSource
}

// Startable reports whether the app can be started on demand.
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
	Address     string     // for browsers, without a ticket; "" if no gateway runs
	LastUsedAt  *time.Time // through a gateway, by users
}

// maxFound limits the listed ports of a container. Other ports can be opened by number.
const maxFound = 100

// surveyTogether limits the containers that one request asks concurrently.
const surveyTogether = 8

// List returns the apps of the main kernels of those sessions that the viewer can enter, with their
// live status, by session.
func (s *Service) List(ctx context.Context, sessions []uuid.UUID) (map[uuid.UUID][]*App, error) {
	return s.list(ctx, sessions, nil)
}

// Of returns the apps of one kernel of a session.
func (s *Service) Of(ctx context.Context, sess, kernel uuid.UUID) ([]*App, error) {
	m, err := s.list(ctx, []uuid.UUID{sess}, &kernel)
	return m[sess], err
}

// list returns the apps of one kernel of each session: the kernel with an ID, or the main kernels.
func (s *Service) list(ctx context.Context, sessions []uuid.UUID, kernel *uuid.UUID) (map[uuid.UUID][]*App, error) {
	v := viewer.From(ctx)
	ctx = viewer.SystemContext(ctx)
	kernels, err := s.kernels(ctx, sessions, kernel)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]*App{}
	var mu sync.Mutex
	g := errgroup.Group{}
	g.SetLimit(surveyTogether)
	for _, k := range kernels {
		if e, on, _ := permit.Of(&k.session); !v.May(access.Enter, e, on) {
			continue
		}
		g.Go(func() error {
			apps := s.ofKernel(ctx, &k.session, k)
			mu.Lock()
			defer mu.Unlock()
			out[k.session.ID] = apps
			return nil
		})
	}
	return out, g.Wait()
}

// kernelsQuery reads live sessions in one statement, each with one kernel, its machine, the labels
// of the image, the shares of apps, and their ports at the gateways.
const kernelsQuery = `SELECT s.id, s.status, s.owner_id, s.project_id, s.domain_id, s.secrets_sealed, coalesce(s.apps, 'null'), k.id, k.index, coalesce(a.name, ''), coalesce(i.labels, '{}'),
  (SELECT coalesce(json_agg(h), '[]') FROM app_shares h WHERE h.session_id = k.session_id),
  (SELECT coalesce(json_agg(p), '[]') FROM app_ports p WHERE p.session_id = k.session_id),
  (SELECT coalesce(json_object_agg(u.app, u.at), '{}') FROM idle_activities u WHERE u.session_id = k.session_id AND u.app <> '')
FROM kernels k JOIN sessions s ON s.id = k.session_id JOIN images i ON i.id = s.image_id LEFT JOIN agents a ON a.id = k.agent_id
WHERE s.id = ANY($1::uuid[]) AND s.terminated_at IS NULL AND CASE WHEN $2::uuid IS NULL THEN k.index = 0 ELSE k.id = $2 END`

// kernelRow is a row of kernelsQuery.
type kernelRow struct {
	session ent.Session // only the fields that are needed for apps and for the permission to enter
	id      uuid.UUID
	index   int
	agent   string
	labels  map[string]string
	shares  []*ent.AppShare
	ports   []*ent.AppPort
	used    map[string]time.Time // last use by app, over all containers of the session
}

func (s *Service) kernels(ctx context.Context, sessions []uuid.UUID, kernel *uuid.UUID) ([]*kernelRow, error) {
	ids := make([]string, len(sessions))
	for i, id := range sessions {
		ids[i] = id.String()
	}
	rows, err := s.Client.QueryContext(ctx, kernelsQuery, ids, kernel)
	if err != nil {
		return nil, fmt.Errorf("read containers with apps: %w", err)
	}
	defer rows.Close()
	var out []*kernelRow
	for rows.Next() {
		var apps, labels, shares, ports, used []byte
		k := &kernelRow{}
		of := &k.session
		if err := rows.Scan(&of.ID, &of.Status, &of.OwnerID, &of.ProjectID, &of.DomainID, &of.SecretsSealed, &apps, &k.id, &k.index, &k.agent, &labels, &shares, &ports, &used); err != nil {
			return nil, fmt.Errorf("read containers with apps: %w", err)
		}
		if err := errors.Join(json.Unmarshal(apps, &of.Apps), json.Unmarshal(labels, &k.labels), json.Unmarshal(shares, &k.shares), json.Unmarshal(ports, &k.ports), json.Unmarshal(used, &k.used)); err != nil {
			return nil, fmt.Errorf("read containers with apps: %w", err)
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// ofKernel returns the apps of a kernel with their status. If the container does not respond, it
// returns the apps that are known without it, and the error.
func (s *Service) ofKernel(ctx context.Context, row *ent.Session, k *kernelRow) []*App {
	var survey *appstate.Survey
	reason := ""
	if row.Status == lifecycle.Running {
		rpc, err := s.Agents.RPC(k.agent)
		if err == nil {
			survey, err = s.survey(ctx, rpc, k.id)
		}
		if err != nil {
			s.Logger.WarnContext(ctx, "survey apps", "kernel", k.id, "error", err)
			survey, reason = nil, "the container does not answer"
		}
	}
	var apps []*App
	for _, d := range s.definitions(row, k.labels, survey) {
		a := &App{Name: d.Name, Title: cmp.Or(d.Title, d.Name), KernelID: k.id, Port: d.Port, Source: d.Source, Startable: d.Startable(), Reason: reason}
		a.Status = StatusStopped
		if survey != nil {
			a.Status, a.Reason = statusOf(d, survey)
		}
		apps = append(apps, a)
	}
	for _, a := range apps {
		i := slices.IndexFunc(k.shares, func(sh *ent.AppShare) bool {
			return sh.App == a.Name && sh.Kernel == k.index && !expired(sh)
		})
		if i >= 0 {
			a.Sharing = k.shares[i]
		}
		a.Address = s.Address(Target{Session: row.ID, Kernel: k.index, App: a.Name}, k.port(a.Name))
		if at, ok := k.used[a.Name]; ok {
			a.LastUsedAt = &at
		}
	}
	return apps
}

// definitions returns the apps of a session: requested ones replace those of the image, which
// replace those of the catalogue. Listening ports of no app come last. The catalogue and the ports
// need a survey of the container.
func (s *Service) definitions(row *ent.Session, labels map[string]string, survey *appstate.Survey) []Definition {
	var out []Definition
	add := func(d Definition) {
		if !slices.ContainsFunc(out, func(o Definition) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	requested, err := secrets.Apps(s.Keys, row)
	if err != nil {
		s.Logger.Error("read the apps of a session", "session", row.ID, "error", err)
	}
	for _, a := range requested {
		if e := s.known(a.Name); e != nil && len(a.Command) == 0 {
			a.Command, a.Title = e.Command, cmp.Or(a.Title, e.Title)
			if len(a.Environment) == 0 {
				a.Environment = e.Environment
			}
		}
		add(Definition{App: a, Source: SourceSession})
	}
	for _, d := range s.labelled(labels) {
		add(d)
	}
	if survey == nil {
		return out
	}
	for _, e := range s.catalogue {
		if !slices.ContainsFunc(e.Needs, func(p string) bool { return survey.Found[p] == "" }) {
			add(e.definition())
		}
	}
	listed := 0
	for _, p := range survey.Ports {
		if listed == maxFound {
			break
		}
		if p.Port < 1 || p.Port > 65535 {
			continue // the container is not trusted
		}
		listed++
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

// statusOf compares an app with the survey of its container.
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

// stoppedByUs is the exit code after SIGTERM, which Stop sends.
const stoppedByUs = 128 + 15

func expired(sh *ent.AppShare) bool { return sh.ExpiresAt != nil && !sh.ExpiresAt.After(clock.Now()) }
