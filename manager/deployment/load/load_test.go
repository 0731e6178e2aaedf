package load_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/deployment/load"
)

func TestQuantiles(t *testing.T) {
	var h, other load.Histogram
	if _, known := h.Quantile(0.5); known {
		t.Error("nothing has a quantile")
	}
	for i := range 100 {
		h.Add(time.Duration(i+1) * 10 * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.95: 950 * time.Millisecond, 1: time.Second} {
		if got, known := h.Quantile(q); !known || got < want || got > want*13/10 {
			t.Errorf("quantile %v is %v, want %v or up to 30 %% more", q, got, want)
		}
	}
	other.Add(0)
	other.Add(time.Hour)
	h.Merge(other)
	if got, _ := h.Quantile(0); got > 2*time.Millisecond {
		t.Errorf("the smallest is %v", got)
	}
	h.Merge(load.Histogram{1, 2}) // of another version
}

func TestSum(t *testing.T) {
	a, b := uuid.New(), uuid.New()
	now := time.Now()
	one := load.Window{Seconds: 60, Requests: 60, Errors: 6, Completion: 120}
	total := load.Sum(
		load.Report{Version: 7, Waiting: 1, LastRequest: now.Add(-time.Minute), Replicas: map[uuid.UUID]load.Replica{a: {Revision: 1, InFlight: 2, Window: one}}},
		load.Report{Version: 5, Waiting: 2, LastRequest: now, Replicas: map[uuid.UUID]load.Replica{a: {Revision: 1, InFlight: 1, Window: one, Ejected: true}, b: {Revision: 2, InFlight: 4, Window: one}}},
	)
	if total.InFlight != 7 || total.Waiting != 3 || total.Oldest != 5 || !total.LastRequest.Equal(now) || !total.Replicas[a].Ejected || total.Replicas[a].InFlight != 3 {
		t.Errorf("the total is %+v", total)
	}
	all, second := total.All(0), total.All(2)
	if all.Rate(all.Requests) != 3 || second.Rate(second.Requests) != 1 || load.Share(all.Errors, all.Requests) != 0.1 || load.Share(1, 0) != 0 {
		t.Errorf("all %+v, revision 2 %+v", all, second)
	}
}

// Reports of gateways that have ended do not count.
func TestStore(t *testing.T) {
	t.Parallel()
	options, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	s, id := &load.Store{Redis: client}, uuid.New()
	put := func(gateway string, n int) {
		t.Helper()
		if err := s.Put(t.Context(), gateway, id, load.Report{Version: n, Waiting: n}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (load.Total, bool) {
		t.Helper()
		all, err := s.Read(t.Context(), id, uuid.New())
		if err != nil || len(all) > 1 {
			t.Fatal(all, err)
		}
		one, found := all[id]
		return one, found
	}
	if _, found := read(); found {
		t.Error("there is a report before the first one")
	}
	put("a", 1)
	put("a", 2)
	put("b", 3)
	if got, _ := read(); got.Waiting != 5 || got.Oldest != 2 {
		t.Errorf("the total is %+v", got)
	}
	if err := s.Remove(t.Context(), "b", id); err != nil {
		t.Fatal(err)
	}
	// A report that is six seconds old, as of a gateway that was killed.
	old, err := client.HGet(t.Context(), "berth:serving:"+id.String(), "a").Result()
	if err != nil {
		t.Fatal(err)
	}
	aged := load.Aged(old, 6*time.Second)
	if err := client.HSet(t.Context(), "berth:serving:"+id.String(), "a", aged).Err(); err != nil {
		t.Fatal(err)
	}
	if got, found := read(); found {
		t.Errorf("an old report counts: %+v", got)
	}
}
