package inference

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/modelmock"
)

// Requests stay in the zone of the router while its replicas have room, go to the others when they have too much to do or
// are gone, and revisions get their shares in any case.
func TestZones(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, modelmock.Config{})
	var targets []Target
	for i, r := range w.model.set.replicas {
		one := r.Target
		one.Near, one.Group, one.Weight = i < 2, 1, 1
		targets = append(targets, one)
	}
	w.model.Update(targets...)
	count := func(n int) map[string]int {
		got := map[string]int{}
		for i := range n {
			got[w.ask(t.Context(), "/v1/completions", fmt.Sprintf(`{"model":"mock","max_tokens":1,"prompt":"%d"}`, i)).Header.Get("Berth-Replica")]++
		}
		return got
	}
	if got := count(40); got["r0"]+got["r1"] != 40 || got["r0"] == 0 || got["r1"] == 0 {
		t.Errorf("requests left the zone: %v", got)
	}
	w.model.Update(targets[1:]...)
	if got := count(20); got["r1"] != 20 {
		t.Errorf("requests left the zone with one replica: %v", got)
	}
	w.model.Update(targets[2:]...)
	if got := count(20); got["r2"]+got["r3"] != 20 {
		t.Errorf("no replica is in the zone: %v", got)
	}
	w.model.Update(targets...)
	targets[2].Group, targets[3].Group = 2, 2 // a revision that only runs in the other zone
	w.model.Update(targets...)
	if got := count(200); got["r2"]+got["r3"] < 50 {
		t.Errorf("a revision in another zone lost its share of one half: %v", got)
	}
}

func TestABusyZoneOverflows(t *testing.T) {
	t.Parallel()
	s := &set{prefixes: newPrefixes()}
	s.update([]Target{{ID: "near", Weight: 1, Near: true}, {ID: "far", Weight: 1}})
	got := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 100 { // none ends
		all.Go(func() {
			r := s.pick(nil, nil, time.Now())
			mu.Lock()
			defer mu.Unlock()
			got[r.ID]++
		})
	}
	all.Wait()
	if got["far"] < 30 || got["near"] < got["far"] {
		t.Errorf("of 100 requests that stay open: %v", got)
	}
}
