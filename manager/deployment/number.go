package deployment

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/manager/deployment/expression"
	"github.com/berthhq/berth/manager/deployment/scale"
)

// storeCallsEvery is the time after which calls for a number of replicas are stored although they changed nothing.
const storeCallsEvery = 30 * time.Second

// number decides how many replicas are wanted.
func (t *term) number(ctx context.Context, p *plan) error {
	s, err := stored[Scaling](p.Scaling)
	if err != nil {
		return err
	}
	rules, err := s.rules()
	if err != nil {
		return err
	}
	from, kept := t.calls[p.ID]
	if !kept || from.Wanted != p.progress.Scale.Wanted {
		from = p.progress.Scale
	}
	if p.load.LastRequest.After(from.LastRequest) {
		from.LastRequest = p.load.LastRequest
	}
	d := scale.Decide(rules, from, scale.Seen{
		Now: p.now, Ready: p.count(deploymentreplica.PhaseReady), Values: t.values(ctx, p, s), Waiting: p.load.Waiting,
	})
	t.calls[p.ID] = d.Next
	if n := d.Next.Wanted; n != p.Wanted {
		x := note{kind: deploymentevent.KindScaled, before: &p.Wanted, after: &n, metric: d.Metric, message: d.Why}
		if d.Metric != "" {
			x.value, x.limit = &d.Value, &d.Limit
		}
		p.notes = append(p.notes, x)
	} else if p.lastCall(p.progress.Scale, d.Next) {
		return nil
	}
	p.progress.Scale, p.progress.Rollout.Wanted = d.Next, d.Next.Wanted
	return nil
}

// lastCall reports whether what was stored of the calls is fresh enough.
func (p *plan) lastCall(was, now scale.State) bool {
	if len(now.Calls) == 0 {
		return true
	}
	return len(was.Calls) > 0 && p.now.Sub(was.Calls[len(was.Calls)-1].At) < storeCallsEvery
}

// values returns the metrics that rules are about. One that a replica did not report is unknown.
func (t *term) values(ctx context.Context, p *plan, s Scaling) scale.Values {
	out := scale.Values{}
	all := p.load.All(0)
	for _, target := range s.Targets {
		switch {
		case ours(target.Metric) && !p.reported:
		case target.Metric == metricRequests:
			out[target.Metric] = float64(p.load.InFlight + p.load.Waiting)
		case target.Metric == metricWaiting:
			out[target.Metric] = float64(p.load.Waiting)
		case target.Metric == metricRate:
			out[target.Metric] = all.Rate(all.Requests)
		case target.Metric == metricTokens:
			out[target.Metric] = all.Rate(all.Completion)
		case strings.HasPrefix(target.Metric, ofExpression):
			if v, known := t.ofExpression(ctx, p, target); known {
				out[target.Metric] = v
			}
		case strings.HasPrefix(target.Metric, ofSession):
			if v, known := t.ofReplicas(p, target, t.ofSessions(ctx, p, strings.TrimPrefix(target.Metric, ofSession))); known {
				out[target.Metric] = v
			}
		default:
			of := func(r *ent.DeploymentReplica) (float64, bool) {
				v, known := t.probes.of(r.ID).values[target.Metric]
				return v, known
			}
			if v, known := t.ofReplicas(p, target, of); known {
				out[target.Metric] = v
			}
		}
	}
	return out
}

// ofExpression returns the value of an expression over the ready replicas.
func (t *term) ofExpression(ctx context.Context, p *plan, target Target) (float64, bool) {
	e := t.expressions[strings.TrimPrefix(target.Metric, ofExpression)]
	var over []*expression.History
	for _, r := range p.replicas {
		if r.Phase == deploymentreplica.PhaseReady {
			h := t.probes.history(r.ID)
			if h == nil {
				return 0, false
			}
			over = append(over, h)
		}
	}
	if e == nil || len(over) == 0 {
		return 0, false
	}
	v, known, err := t.evaluator.Value(ctx, e, p.now, over, target.Sum)
	if err != nil {
		t.Logger.WarnContext(ctx, "evaluate an expression", "deployment", p.ID, "error", err)
	}
	return v, known
}

// ofSessions returns a function that averages a metric over the devices of a replica's main container.
func (t *term) ofSessions(ctx context.Context, p *plan, metric string) func(*ent.DeploymentReplica) (float64, bool) {
	var kernels []uuid.UUID
	for _, r := range p.replicas {
		if at := place(r); at != nil {
			kernels = append(kernels, at.ID)
		}
	}
	all, err := t.Samples.Latest(ctx, kernels)
	if err != nil {
		t.Logger.WarnContext(ctx, "read the samples of replicas", "deployment", p.ID, "error", err)
	}
	return func(r *ent.DeploymentReplica) (float64, bool) {
		at := place(r)
		if at == nil {
			return 0, false
		}
		sum, n := 0.0, 0
		for _, m := range all[at.ID].Metrics {
			if m.Name == metric {
				sum, n = sum+m.Value, n+1
			}
		}
		return sum / float64(max(n, 1)), n > 0
	}
}

// ofReplicas returns the sum or the average of a metric over the ready replicas. It is unknown if that of one of them is.
func (t *term) ofReplicas(p *plan, target Target, of func(*ent.DeploymentReplica) (float64, bool)) (float64, bool) {
	sum, n := 0.0, 0
	for _, r := range p.replicas {
		if r.Phase != deploymentreplica.PhaseReady {
			continue
		}
		v, known := of(r)
		if !known {
			return 0, false
		}
		sum, n = sum+v, n+1
	}
	if n == 0 {
		return 0, false
	}
	if !target.Sum {
		sum /= float64(n)
	}
	return sum, true
}
