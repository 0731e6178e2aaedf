package serving

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/lifecycle"
)

func replicaOf(revision int, phase deploymentreplica.Phase) row {
	return row{id: uuid.New(), revision: revision, phase: phase, place: place{kernel: uuid.New(), agent: "machine", port: 8000}}
}

// The share of a revision is divided by its ready replicas, and no share becomes 0.
func TestWeights(t *testing.T) {
	t.Parallel()
	const ready, draining = deploymentreplica.PhaseReady, deploymentreplica.PhaseDraining
	s := &state{weights: map[int]int{1: 99, 2: 1}, replicas: []row{replicaOf(1, ready), replicaOf(2, draining), replicaOf(3, ready)}}
	for range 1000 {
		s.replicas = append(s.replicas, replicaOf(2, ready))
	}
	if first, many := s.weight(s.replicas[0]), s.weight(s.replicas[3]); many == 0 || first != 99*1000*many {
		t.Errorf("weights %d and %d", first, many)
	}
	for what, r := range map[string]row{"a drained replica": s.replicas[1], "a revision without a share": s.replicas[2]} {
		if n := s.weight(r); n != 0 {
			t.Errorf("%s has the weight %d", what, n)
		}
	}
	far := replicaOf(1, ready)
	far.agent = ""
	if s.replicas = append(s.replicas, far); s.weight(far) != 0 || s.weight(s.replicas[0]) != 99*shareUnit {
		t.Error("a replica without a machine has a share")
	}
	if s.ending = true; s.weight(s.replicas[0]) != 0 {
		t.Error("a deployment that ends has a share")
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	starting := replicaOf(1, deploymentreplica.PhaseStarting)
	pulls, loads := starting, starting
	pulls.session, loads.session, loads.message = lifecycle.Preparing, lifecycle.Running, "loading weights: 40 %"
	ready := replicaOf(1, deploymentreplica.PhaseReady)
	for want, s := range map[string]*state{
		"waiting for a replica":                    {wanted: 0},
		"replica 1 of 1: creating the session":     {wanted: 1, replicas: []row{starting}},
		"replica 1 of 2: pulling the image":        {wanted: 2, replicas: []row{pulls}},
		"replica 2 of 3: loading weights: 40 %":    {wanted: 3, replicas: []row{ready, pulls, loads}},
		"replica 1 of 1: loading weights: 40 %":    {wanted: 0, replicas: []row{loads}},
		"replica 1 of 1: the engine starts":        {wanted: 1, replicas: []row{{phase: starting.phase, session: lifecycle.Running}}},
		"replica 1 of 1: waiting for capacity":     {wanted: 1, replicas: []row{{phase: starting.phase, session: lifecycle.Pending}}},
		"replica 1 of 1: the image does not exist": {wanted: 1, replicas: []row{{phase: starting.phase, message: "the image does not exist."}}},
	} {
		if got := s.progress(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A window has the last minute, and the time since the first request if that is less.
func TestWindow(t *testing.T) {
	t.Parallel()
	var w window
	start := time.Unix(1_000_000, 0)
	if got := w.sum(start); got.Requests != 0 || got.Seconds != 0 {
		t.Errorf("an empty window: %+v", got)
	}
	r := inference.Record{
		Status: 200, Usage: inference.Usage{Prompt: 10, Completion: 11, Cached: 4}, Waited: 2 * time.Second, FirstByte: 2500 * time.Millisecond, Duration: 3500 * time.Millisecond,
	}
	w.add(r, start)
	w.add(inference.Record{Status: 502, Duration: time.Second}, start.Add(3*time.Second))
	got := w.sum(start.Add(8500 * time.Millisecond))
	if got.Requests != 2 || got.Errors != 1 || got.Prompt != 10 || got.Completion != 11 || got.Cached != 4 || got.Seconds != 10 {
		t.Errorf("the window %+v", got)
	}
	if first, _ := got.FirstByte.Quantile(1); first < 500*time.Millisecond || first > 700*time.Millisecond {
		t.Errorf("first byte %v, want half a second without the wait", first)
	}
	if token, _ := got.PerToken.Quantile(1); token < 100*time.Millisecond || token > 140*time.Millisecond {
		t.Errorf("%v per token, want a tenth of a second", token)
	}
	for i := range 100 {
		w.add(inference.Record{Status: 200}, start.Add(time.Duration(i)*time.Second))
	}
	if got = w.sum(start.Add(99 * time.Second)); got.Requests < 55 || got.Requests > 60 || got.Seconds < 55 || got.Seconds > 60 {
		t.Errorf("after 100 s: %d requests in %v s", got.Requests, got.Seconds)
	}
	if got = w.sum(start.Add(time.Hour)); got.Requests != 0 {
		t.Errorf("after an hour: %+v", got)
	}
}

// A deployment without requests for some time is forgotten, and so is one that has ended.
func TestForgottenModels(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		since time.Duration
		gone  bool
		want  bool
	}{"in use": {time.Minute, false, false}, "not used": {usedFor + time.Second, false, true}, "ended": {0, true, true}} {
		f := &fleet{m: map[uuid.UUID]*model{}}
		d := f.newModel(uuid.New(), "m")
		d.last, d.gone = time.Now().Add(-c.since), c.gone
		f.m[d.id] = d
		if got := f.drop(d); got != c.want || (len(f.m) == 0) != c.want {
			t.Errorf("%s: forgotten %v, %d are left", what, got, len(f.m))
		}
	}
}
