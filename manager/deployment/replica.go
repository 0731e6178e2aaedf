package deployment

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/deployment/rollout"
)

// judgeReplicas decides about each replica for itself: whether it is ready, has failed or has ended.
func (t *term) judgeReplicas(p *plan) {
	for _, r := range p.replicas {
		switch r.Phase {
		case deploymentreplica.PhaseStarting:
			t.starting(p, r)
		case deploymentreplica.PhaseReady:
			t.ready(p, r)
		case deploymentreplica.PhaseDraining:
			p.draining(r)
		case deploymentreplica.PhaseEnding:
			if r.SessionID == nil || over(r) {
				p.phases[r.ID] = deploymentreplica.PhaseEnded
			}
		}
	}
	p.pardon()
}

// over reports whether the session of a replica has ended or was deleted.
func over(r *ent.DeploymentReplica) bool {
	s := r.Edges.Session
	return r.SessionID != nil && (s == nil || s.Status.Final())
}

func (t *term) starting(p *plan, r *ent.DeploymentReplica) {
	s := r.Edges.Session
	switch {
	case over(r):
		p.fail(r, ended(s))
		return
	case s == nil:
		return // it is requested when the decision is carried out
	case s.Status != lifecycle.Running:
		p.messages[r.ID] = waiting(s)
		return
	}
	h := t.probes.of(r.ID)
	limit := seconds(p.engines[r.Revision].StartTimeout)
	switch {
	case h.ready:
		p.phases[r.ID] = deploymentreplica.PhaseReady
		p.messages[r.ID] = ""
		p.notes = append(p.notes, note{kind: deploymentevent.KindReplicaReady, revision: r.Revision,
			message: fmt.Sprintf("%s after %s", called(r), p.now.Sub(r.CreatedAt).Round(100*time.Millisecond))})
	case s.StartedAt != nil && p.now.Sub(*s.StartedAt) > limit:
		p.fail(r, fmt.Sprintf("it was not ready within %s: %s", limit, cmp.Or(h.why, "it was not checked")))
	default:
		p.messages[r.ID] = cmp.Or(h.why, "the engine starts")
	}
}

func (t *term) ready(p *plan, r *ent.DeploymentReplica) {
	s := r.Edges.Session
	switch {
	case over(r):
		p.fail(r, ended(s))
		return
	case s == nil || s.Status != lifecycle.Running:
		p.fail(r, "its session is ending: "+ended(s))
		return
	}
	h := t.probes.of(r.ID)
	if retries := p.engines[r.Revision].Retries; h.ready && h.misses >= retries {
		p.fail(r, fmt.Sprintf("%d checks in a row failed: %s", h.misses, h.why))
		return
	}
	p.messages[r.ID] = h.why
	if !h.ready { // a new leader has not checked it yet
		p.messages[r.ID] = r.Message
	}
}

// draining ends a replica whose requests have ended, or whose time is over.
func (p *plan) draining(r *ent.DeploymentReplica) {
	since := p.now.Sub(r.PhaseSince)
	switch {
	case over(r):
		p.phases[r.ID] = deploymentreplica.PhaseEnded
	case since >= time.Duration(p.DrainSeconds)*time.Second,
		!p.reported && since >= unreported,
		p.reported && p.load.Oldest >= r.Drained && p.load.Replicas[r.ID].InFlight == 0:
		p.phases[r.ID] = deploymentreplica.PhaseEnding
	}
}

// fail records a failure. Package rollout stops the replica.
func (p *plan) fail(r *ent.DeploymentReplica, why string) {
	p.failed[r.ID] = why
	p.notes = append(p.notes, note{kind: deploymentevent.KindReplicaFailed, revision: r.Revision, message: fmt.Sprintf("%s: %s", called(r), why)})
	all := p.progress.Rollout.Failures
	if all == nil {
		all = map[int]rollout.Failures{}
		p.progress.Rollout.Failures = all
	}
	all[r.Revision] = rollout.Failures{Count: all[r.Revision].Count + 1, Last: p.now, Why: why}
	if over(r) {
		p.phases[r.ID] = deploymentreplica.PhaseEnded
	} else {
		p.phases[r.ID] = deploymentreplica.PhaseEnding
	}
}

// pardon forgets the failures of revisions of which a replica has been ready for long enough since.
func (p *plan) pardon() {
	for _, r := range p.replicas {
		f, bad := p.progress.Rollout.Failures[r.Revision]
		if bad && p.phaseOf(r) == deploymentreplica.PhaseReady && r.Phase == deploymentreplica.PhaseReady &&
			r.PhaseSince.After(f.Last) && p.now.Sub(r.PhaseSince) >= proven {
			delete(p.progress.Rollout.Failures, r.Revision)
		}
	}
}

// called returns the name of a replica's session, or its id if it has none.
func called(r *ent.DeploymentReplica) string {
	if s := r.Edges.Session; s != nil {
		return s.Name
	}
	return "replica " + r.ID.String()
}

// ended says why a session has ended.
func ended(s *ent.Session) string {
	switch {
	case s == nil:
		return "its session was deleted"
	case s.StatusMessage != "":
		return s.StatusMessage
	case s.TerminationReason != nil:
		return strings.ReplaceAll(string(*s.TerminationReason), "_", " ")
	}
	return "its session is " + string(s.Status)
}

// waiting says what a session waits for.
func waiting(s *ent.Session) string {
	switch {
	case s.Status == lifecycle.Pending && s.Pending != nil && s.Pending.Summary != "":
		text := s.Pending.Summary
		if at := s.Pending.EstimatedStart; at != nil {
			text += "; it starts by " + at.UTC().Format("2006-01-02 15:04 UTC")
		}
		return text
	case s.Status == lifecycle.Pending:
		return "waits to be scheduled"
	case s.Status == lifecycle.Scheduled || s.Status == lifecycle.Preparing:
		return "its machine fetches the image"
	case s.Status == lifecycle.Terminating:
		return "its session is ending"
	}
	return "its container starts"
}

// describe derives the status of the deployment from its replicas.
func (p *plan) describe() {
	ready, live := p.count(deploymentreplica.PhaseReady), len(p.replicas)-p.count(deploymentreplica.PhaseEnded)+sum(p.start)
	r := p.progress.Rollout
	p.message = ""
	switch {
	case p.Status == entdeployment.StatusEnding && live == 0:
		p.status = entdeployment.StatusEnded
	case p.Status == entdeployment.StatusEnding:
		p.status, p.message = entdeployment.StatusEnding, "its replicas end"
	case r.Target != r.Current:
		p.status, p.message = entdeployment.StatusUpdating, p.reason(r.Target)
	case r.Wanted == 0:
		p.status = entdeployment.StatusAsleep
	case ready >= r.Wanted:
		p.status = entdeployment.StatusServing
	case ready == 0 && p.Status == entdeployment.StatusStarting:
		p.status, p.message = entdeployment.StatusStarting, p.reason(r.Current)
	default:
		p.status, p.message = entdeployment.StatusDegraded, p.reason(r.Current)
	}
}

// reason says why replicas of a revision are missing.
func (p *plan) reason(revision int) string {
	for _, r := range p.replicas {
		if r.Revision != revision {
			continue
		}
		if why, failed := p.failed[r.ID]; failed {
			return why
		}
		if p.phaseOf(r) == deploymentreplica.PhaseStarting {
			if m, known := p.messages[r.ID]; known && m != "" {
				return m
			}
			if r.Message != "" {
				return r.Message
			}
		}
	}
	if f := p.progress.Rollout.Failures[revision]; f.Count > 0 {
		return "the last replica failed: " + f.Why
	}
	return "replicas start"
}
