package deployment

import (
	"context"
	"maps"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/deployment/scale"
)

// samples are the measurements of containers.
type samples map[uuid.UUID]report.Stats

func (s samples) Latest(context.Context, []uuid.UUID) (map[uuid.UUID]report.Stats, error) {
	return s, nil
}

// running returns a ready replica with a container.
func running() *ent.DeploymentReplica {
	k := &ent.Kernel{ID: uuid.New()}
	k.Edges.Agent = &ent.Agent{}
	s := &ent.Session{Status: lifecycle.Running}
	s.Edges.Kernels = []*ent.Kernel{k}
	r := &ent.DeploymentReplica{ID: uuid.New(), Phase: deploymentreplica.PhaseReady}
	r.Edges.Session = s
	return r
}

// A metric that a gateway, a session or an engine does not report is unknown, so it reduces nothing.
func TestMetricsOfRules(t *testing.T) {
	a, b := running(), running()
	used := func(percents ...float64) (out report.Stats) {
		for _, p := range percents {
			out.Metrics = append(out.Metrics, report.Metric{Name: "cuda_util", Value: p})
		}
		return out
	}
	of := samples{place(a).ID: used(20, 40), place(b).ID: used(90)}
	x := &term{Service: New(Config{Samples: of}), probes: newProbes(nil)}
	x.probes.all[a.ID] = &probe{health: health{values: map[string]float64{"cache": 0.2, "queue": 3}}}
	x.probes.all[b.ID] = &probe{health: health{values: map[string]float64{"cache": 0.6, "queue": 4}}}
	s := Scaling{Targets: []Target{
		{Metric: "requests", Sum: true}, {Metric: "waiting", Sum: true}, {Metric: "requestRate", Sum: true}, {Metric: "tokenRate", Sum: true},
		{Metric: "session:cuda_util"}, {Metric: "session:npu_util"}, {Metric: "cache"}, {Metric: "queue", Sum: true}, {Metric: "none"},
	}}
	p := &plan{seen: &seen{
		Deployment: &ent.Deployment{}, replicas: []*ent.DeploymentReplica{a, b}, reported: true,
		load: load.Total{InFlight: 5, Waiting: 2, Replicas: map[uuid.UUID]load.Replica{a.ID: {Window: load.Window{Seconds: 10, Requests: 20, Completion: 300}}}},
	}}
	want := scale.Values{"requests": 7, "waiting": 2, "requestRate": 2, "tokenRate": 30, "session:cuda_util": 60, "cache": 0.4, "queue": 7}
	if got := x.values(t.Context(), p, s); !maps.Equal(got, want) {
		t.Errorf("the values are %v, want %v", got, want)
	}
	p.reported = false
	delete(of, place(b).ID)
	want = scale.Values{"cache": 0.4, "queue": 7}
	if got := x.values(t.Context(), p, s); !maps.Equal(got, want) {
		t.Errorf("without reports and samples, the values are %v, want %v", got, want)
	}
}
