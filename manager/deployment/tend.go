package deployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/manager/deployment/rollout"
	"github.com/berthhq/berth/manager/store"
)

const (
	// proven is the time for which a replica has to be ready until the failures before it are forgotten.
	proven = 30 * time.Second
	// unreported is the time after which a drained replica ends if no gateway reports.
	unreported = 5 * time.Second
)

// plan is what one look decides about a deployment.
type plan struct {
	*seen
	now      time.Time
	progress progress
	phases   map[uuid.UUID]deploymentreplica.Phase // that change
	failed   map[uuid.UUID]string                  // replicas that have failed, and why
	messages map[uuid.UUID]string                  // of replicas
	start    map[int]int                           // replicas to create, by revision
	weights  map[int]int
	status   entdeployment.Status
	message  string
	notes    []note
}

// tend decides about a deployment, stores the decision, and carries it out. What fails here, the next look repeats.
func (t *term) tend(ctx context.Context, d *seen) error {
	p := &plan{
		seen: d, now: clock.Now(), phases: map[uuid.UUID]deploymentreplica.Phase{}, failed: map[uuid.UUID]string{},
		messages: map[uuid.UUID]string{}, start: map[int]int{}, weights: d.Weights,
	}
	var err error
	if p.progress, err = stored[progress](d.Progress); err != nil {
		return err
	}
	was := p.progress.essence()
	t.judgeReplicas(p)
	if d.Status == entdeployment.StatusEnding {
		p.end()
	} else {
		if err := t.number(ctx, p); err != nil {
			return err
		}
		p.decide()
	}
	p.describe()
	if p.nothing(was) {
		return t.carryOut(ctx, d)
	}
	if err := t.store(ctx, p); err != nil {
		return err
	}
	t.changed(ctx, d.ID)
	return nil // the event causes the next look, which carries the decision out
}

// decide lets package rollout decide about the replicas.
func (p *plan) decide() {
	r := &p.progress.Rollout
	strategy, _ := stored[Strategy](p.Strategy)
	r.Strategy = strategy.rules()
	if r.Target != r.Current && r.Strategy.Kind == rollout.Canary {
		target := p.load.All(r.Target)
		r.Verdict, r.Erred = judge(target, p.load.All(r.Current)), r.Erred || target.Errors > 0
	}
	d := rollout.Plan(*r, p.observed(), p.now)
	p.start, p.weights = d.Start, d.Weights
	for _, id := range d.Drain {
		p.phases[uuid.MustParse(id)] = deploymentreplica.PhaseDraining
	}
	for _, id := range d.Stop {
		if x := uuid.MustParse(id); p.failed[x] == "" { // fail has decided about the others
			p.phases[x] = deploymentreplica.PhaseEnding
		}
	}
	p.leave(d.Next.Wanted)
	p.noteChange(r, d)
	before := r.Current
	*r = d.Next
	if r.Current != before {
		p.progress.Before = before
	}
}

// noteChange records what became of the change to another revision.
func (p *plan) noteChange(was *rollout.State, d rollout.Decision) {
	switch d.Change {
	case rollout.Completed:
		p.notes = append(p.notes, note{kind: deploymentevent.KindCompleted, revision: d.Next.Current})
	case rollout.RolledBack:
		p.notes = append(p.notes, note{kind: deploymentevent.KindRolledBack, revision: was.Target, message: d.Why})
	case rollout.Stepped:
		text := "all requests"
		if d.Next.Step < len(d.Next.Strategy.Steps) {
			text = fmt.Sprintf("%d %% of the requests", d.Next.Strategy.Steps[d.Next.Step])
		}
		if d.Why != "" {
			text += ": " + d.Why
		}
		p.notes = append(p.notes, note{kind: deploymentevent.KindStepped, revision: d.Next.Target, message: text})
	}
}

// observed returns the replicas for package rollout. Those on machines that are drained are left out, so that others are started
// for them.
func (p *plan) observed() (out []rollout.Replica) {
	for _, r := range p.replicas {
		x := rollout.Replica{ID: r.ID.String(), Revision: r.Revision, Since: r.PhaseSince}
		phase := r.Phase
		if next, changes := p.phases[r.ID]; changes {
			phase, x.Since = next, p.now
		}
		_, failed := p.failed[r.ID]
		switch {
		case failed:
			x.Phase = rollout.Failed
		case phase == deploymentreplica.PhaseStarting:
			x.Phase = rollout.Starting
		case phase == deploymentreplica.PhaseReady && leaving(r) == nil:
			x.Phase = rollout.Ready
		case phase == deploymentreplica.PhaseDraining:
			x.Phase = rollout.Draining
		default:
			continue
		}
		out = append(out, x)
	}
	return out
}

// leaving returns the time at which the machine of a replica ends its sessions; nil if it is not drained.
func leaving(r *ent.DeploymentReplica) *time.Time {
	if at := place(r); at != nil {
		return at.Edges.Agent.DrainDeadline
	}
	return nil
}

// leave drains replicas on machines that are drained, as soon as others replace them, or when it is time.
func (p *plan) leave(wanted int) {
	ready := 0
	for _, r := range p.replicas {
		if p.phaseOf(r) == deploymentreplica.PhaseReady && leaving(r) == nil {
			ready++
		}
	}
	for _, r := range p.replicas {
		end := leaving(r)
		if end == nil || p.phaseOf(r) != deploymentreplica.PhaseReady {
			continue
		}
		last := end.Add(-time.Duration(p.DrainSeconds)*time.Second - unreported)
		if ready >= wanted || p.now.After(last) {
			p.phases[r.ID] = deploymentreplica.PhaseDraining
			p.messages[r.ID] = "its machine is drained"
		}
	}
}

// phaseOf returns the phase of a replica after the decision.
func (p *plan) phaseOf(r *ent.DeploymentReplica) deploymentreplica.Phase {
	if next, changes := p.phases[r.ID]; changes {
		return next
	}
	return r.Phase
}

func (p *plan) count(phase deploymentreplica.Phase) (n int) {
	for _, r := range p.replicas {
		if p.phaseOf(r) == phase {
			n++
		}
	}
	return n
}

// end ends all replicas.
func (p *plan) end() {
	for _, r := range p.replicas {
		switch p.phaseOf(r) {
		case deploymentreplica.PhaseReady:
			p.phases[r.ID] = deploymentreplica.PhaseDraining
		case deploymentreplica.PhaseStarting:
			p.phases[r.ID] = deploymentreplica.PhaseEnding
		}
	}
	p.weights = map[int]int{}
}

// nothing reports whether a decision changes nothing that is stored.
func (p *plan) nothing(was []byte) bool {
	for _, r := range p.replicas {
		if m, changes := p.messages[r.ID]; changes && m != r.Message {
			return false
		}
	}
	return len(p.phases) == 0 && len(p.failed) == 0 && len(p.notes) == 0 && sum(p.start) == 0 && maps.Equal(p.weights, p.Weights) &&
		p.status == p.Status && p.message == p.Message && slices.Equal(was, p.progress.essence())
}

// essence is what has to be stored when it changes. While no replica is wanted, the time of a change to another revision does not
// pass, so its start is always now.
func (p progress) essence() []byte {
	if p.Rollout.Wanted == 0 {
		p.Rollout.Began, p.Rollout.StepBegan = time.Time{}, time.Time{}
	}
	return text(p)
}

func sum(m map[int]int) (n int) {
	for _, x := range m {
		n += x
	}
	return n
}

// store stores a decision, unless the deployment has changed since it was observed.
func (t *term) store(ctx context.Context, p *plan) error {
	return store.InTx(ctx, t.Client, func(tx *ent.Tx) error {
		up := tx.Deployment.Update().Where(entdeployment.ID(p.ID), entdeployment.Version(p.Version)).AddVersion(1).
			SetWanted(p.progress.Rollout.Wanted).SetCurrent(p.progress.Rollout.Current).SetTarget(p.progress.Rollout.Target).
			SetProgress(text(p.progress)).SetWeights(p.weights).SetStatus(p.status).SetMessage(p.message)
		if at := p.load.LastRequest; !at.IsZero() && (p.LastRequestAt == nil || at.After(*p.LastRequestAt)) {
			up.SetLastRequestAt(at)
		}
		if p.status == entdeployment.StatusEnded {
			up.SetEndedAt(p.now)
			p.notes = append(p.notes, note{kind: deploymentevent.KindEnded})
		}
		n, err := up.Save(ctx)
		if err != nil {
			return fmt.Errorf("store decision: %w", err)
		}
		if n == 0 {
			return nil // a person or another leader was faster; the next look sees it
		}
		if err := p.storeReplicas(ctx, tx); err != nil {
			return err
		}
		for _, x := range p.notes {
			if err := record(ctx, tx, p.ID, x); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *plan) storeReplicas(ctx context.Context, tx *ent.Tx) error {
	for _, r := range p.replicas {
		phase := p.phaseOf(r)
		message, said := p.messages[r.ID]
		why, failed := p.failed[r.ID]
		if phase == r.Phase && !failed && (!said || message == r.Message) {
			continue
		}
		up := tx.DeploymentReplica.UpdateOne(r)
		if phase != r.Phase {
			up.SetPhase(phase).SetPhaseSince(p.now).SetMessage("")
		}
		switch {
		case failed:
			up.SetFailed(true).SetMessage(why)
		case said:
			up.SetMessage(message)
		}
		if phase == deploymentreplica.PhaseDraining && r.Phase != phase {
			up.SetDrained(p.Version + 1)
		}
		if phase == deploymentreplica.PhaseEnded {
			up.SetEndedAt(p.now)
		}
		if err := up.Exec(ctx); err != nil {
			return fmt.Errorf("store replica: %w", err)
		}
	}
	for _, revision := range slices.Sorted(maps.Keys(p.start)) {
		for range p.start[revision] {
			if err := tx.DeploymentReplica.Create().SetDeploymentID(p.ID).SetRevision(revision).SetPhaseSince(p.now).SetMessage("waits for its session").Exec(ctx); err != nil {
				return fmt.Errorf("store replica: %w", err)
			}
		}
	}
	return nil
}
