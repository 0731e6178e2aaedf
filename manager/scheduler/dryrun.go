package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
)

// Trial is a snapshot of the cluster for trying hypothetical requests. It is read once
// for any number of them.
type Trial struct {
	snap   *plan.Snapshot
	bounds []policy.Limit // on how long sessions run
}

// Outcome is the result of a tried request: Never says why it can never start, Waiting
// why it would not start at once. If both are empty, it would start at once.
type Outcome struct {
	Never   string
	Waiting string
}

// Trial reads the cluster.
func (s *Scheduler) Trial(ctx context.Context) (*Trial, error) {
	m, err := s.read(viewer.SystemContext(ctx))
	if err != nil {
		return nil, err
	}
	return &Trial{snap: m.snap, bounds: m.bounds}, nil
}

// Run tries one request at the end of the queue of the group that a session would get.
func (t *Trial) Run(r plan.Request, groups []uuid.UUID) Outcome {
	r.SessionID, r.Created = uuid.New(), t.snap.Now
	group, never := choose(t.snap, plan.NewIdle(t.snap).CanEver, groups, r)
	if len(never) > 0 {
		return Outcome{Never: never[0].Reason}
	}
	r.Group = group
	bare := slices.Clone(t.snap.Limits)
	for i := range bare { // as though no one used anything
		bare[i].Used, bare[i].Sessions = nil, 0
	}
	if reached := plan.NewLedger(bare).Reached(&r); len(reached) > 0 {
		return Outcome{Never: reached[0].String()}
	}
	decisions := plan.UpTo(t.with(r), r.SessionID)
	if d := decisions[len(decisions)-1]; !d.Placed() {
		return Outcome{Waiting: d.Waiting.Summary}
	}
	return Outcome{}
}

// with returns the snapshot with one more request.
func (t *Trial) with(r plan.Request) *plan.Snapshot {
	with := *t.snap
	with.Pending = append(slices.Clone(t.snap.Pending), r)
	return &with
}

// Verdict is the result of a dry run.
type Verdict string

// The verdicts.
const (
	VerdictNow     Verdict = "now"
	VerdictWaits   Verdict = "waits"
	VerdictNever   Verdict = "never"   // no agent could run it, even if the agent were idle
	VerdictRefused Verdict = "refused" // createSession would refuse it for another reason
)

// DryRun is the result of checking and planning a session without creating it.
type DryRun struct {
	Verdict       Verdict
	Refusals      []*problem.Problem // why it would be refused, or could never start
	ResourceGroup *uuid.UUID         // nil when it would be refused
	Agents        []uuid.UUID        // on which it would start
	Pending       *report.Pending    // why it would wait
	Ahead         []*Place           // the sessions that would be ahead
	Slots         resource.Slots     // of all containers; nil when it would be refused

	suggest func(context.Context) ([]*Suggestion, error)
}

// Suggestions returns the changes with which the session would start at once. They cost
// more than the rest, so they are looked for on demand.
func (d *DryRun) Suggestions(ctx context.Context) ([]*Suggestion, error) {
	if d.suggest == nil {
		return nil, nil
	}
	return d.suggest(ctx)
}

func (d *DryRun) refuse(err error) {
	p, _ := problem.From(err)
	d.Refusals = append(d.Refusals, &p)
}

// DryRun checks a request like createSession, and plans with it.
func (a *Advisor) DryRun(ctx context.Context, in session.CreateSessionInput) (*DryRun, error) {
	p, refused, err := a.sessions.Preview(ctx, in)
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		out := &DryRun{Verdict: VerdictNever}
		for _, err := range refused {
			if !errors.Is(err, session.ErrNeverFits) {
				out.Verdict = VerdictRefused
			}
			out.refuse(err)
		}
		return out, nil
	}
	trial, err := a.scheduler.Trial(ctx)
	if err != nil {
		return nil, err
	}
	r := trial.requestOf(p)
	out := &DryRun{ResourceGroup: &p.Group, Slots: resource.Slots{}}
	for range p.Kernels {
		out.Slots.Add(p.Slots)
	}
	for _, never := range plan.CanEver(trial.snap, r) {
		out.Verdict = VerdictNever
		out.refuse(problem.Invalid(never.Field, "%s", never.Reason).WithLimit(never.Limit))
	}
	if out.Verdict != "" {
		return out, nil
	}
	v := &view{snap: trial.with(*r), queues: map[uuid.UUID][]*Place{}, places: map[uuid.UUID]*Place{}}
	decisions := plan.UpTo(v.snap, r.SessionID)
	if d := decisions[len(decisions)-1]; d.Placed() {
		out.Verdict = VerdictNow
		for _, k := range d.Assignments {
			if !slices.Contains(out.Agents, k.AgentID) {
				out.Agents = append(out.Agents, k.AgentID)
			}
		}
		return out, nil
	}
	v.fill(decisions)
	out.Verdict, out.Pending, out.Ahead = VerdictWaits, v.places[r.SessionID].Pending, v.places[r.SessionID].Ahead()
	out.suggest = func(ctx context.Context) ([]*Suggestion, error) { return a.suggest(ctx, v.snap, r.SessionID, p) }
	return out, nil
}

// requestOf returns the request of a session that would be created.
func (t *Trial) requestOf(p *session.Preview) *plan.Request {
	r := &plan.Request{
		SessionID: uuid.New(), Owner: p.Owner, Project: p.Project, Domain: p.Domain, Group: p.Group, Priority: p.Priority,
		Created: t.snap.Now, After: p.After, Architecture: p.Architecture, Volumes: p.Volumes, Agents: p.Agents, Strict: p.Strict,
	}
	for range p.Kernels {
		r.Kernels = append(r.Kernels, plan.KernelRequest{ID: uuid.New(), Slots: p.Slots})
	}
	if p.Keypair != nil {
		r.Keypair = *p.Keypair
	}
	if p.StartsAt != nil {
		r.StartsAt = *p.StartsAt
	}
	if g := p.SessionGroup; g != nil {
		r.Together = &plan.Together{ID: g.ID, Spread: g.Placement == sessiongroup.PlacementSpread, Strict: g.Strict}
	}
	at := policy.Place{Domain: p.Domain, Project: p.Project, User: p.Owner, Group: p.Group, Keypair: r.Keypair}
	if most := session.Lifetime(t.bounds, at, p.Lifetime); most > 0 {
		r.Lifetime = beginning + most + leaving
	}
	return r
}
