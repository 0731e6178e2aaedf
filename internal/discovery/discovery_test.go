package discovery_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/internal/testenv"
)

const timeout = 2 * time.Minute

func dial(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// term is one time in office.
type term struct {
	id    string
	epoch int64
	ctx   context.Context
}

// candidate campaigns until stop. Every term is sent to terms.
func candidate(t *testing.T, c *clientv3.Client, id string, terms chan<- term) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		err := discovery.Campaign(ctx, c, "scheduler", id, func(ctx context.Context, won *discovery.Term) error {
			terms <- term{id, won.Revision, ctx}
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("%s: campaign ended: %v", id, err)
		}
	})
	stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func next[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(timeout):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func TestOneLeaderAtATime(t *testing.T) {
	endpoint := testenv.Etcd(t)
	terms := make(chan term, 10)
	stops := map[string]func(){}
	for _, id := range []string{"a", "b", "c"} {
		stops[id] = candidate(t, dial(t, endpoint), id, terms)
	}
	var last int64
	for range 3 {
		got := next(t, terms, "leader")
		if got.epoch <= last {
			t.Errorf("epoch %d after %d", got.epoch, last)
		}
		last = got.epoch
		if len(terms) > 0 {
			t.Error("two leaders")
		}
		if id, err := discovery.Leader(t.Context(), dial(t, endpoint), "scheduler"); err != nil || id != got.id {
			t.Errorf("leader is %q (%v), want %q", id, err, got.id)
		}
		begun := time.Now()
		stops[got.id]()
		t.Logf("resigning took %v", time.Since(begun))
		if got.ctx.Err() == nil {
			t.Error("lead still runs")
		}
	}
}

func TestLeadersEndIsTheCampaigns(t *testing.T) {
	c := dial(t, testenv.Etcd(t))
	broken := errors.New("broken")
	err := discovery.Campaign(t.Context(), c, "x", "a", func(context.Context, *discovery.Term) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	// It resigned, or the next one would wait for its lease.
	if res, err := c.Get(t.Context(), "election/", clientv3.WithPrefix()); err != nil || len(res.Kvs) != 0 {
		t.Errorf("keys %v (%v), want none", res, err)
	}
}

func TestLostLeaseEndsTheTerm(t *testing.T) {
	c := dial(t, testenv.Etcd(t))
	terms := make(chan term, 10)
	candidate(t, c, "a", terms)
	first := next(t, terms, "leader")
	res, err := c.Get(t.Context(), "election/", clientv3.WithPrefix())
	if err != nil || len(res.Kvs) != 1 {
		t.Fatalf("keys %v (%v)", res, err)
	}
	if _, err := c.Revoke(t.Context(), clientv3.LeaseID(res.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	next(t, first.ctx.Done(), "end of the term")
	if again := next(t, terms, "second term"); again.epoch <= first.epoch {
		t.Errorf("epoch %d after %d", again.epoch, first.epoch)
	}
}

// TestCutOffLeader loses the network, which is also how a crash looks to the rest.
func TestCutOffLeader(t *testing.T) {
	t.Parallel()
	endpoint := testenv.Etcd(t)
	w := testenv.NewWire(t, "unix", strings.TrimPrefix(endpoint, "unix://"))
	terms := make(chan term, 10)
	candidate(t, dial(t, w.Addr), "cut", terms)
	first := next(t, terms, "leader")
	candidate(t, dial(t, endpoint), "other", terms)
	w.Cut()
	begun := time.Now()
	second := next(t, terms, "next leader")
	if first.ctx.Err() == nil {
		t.Error("two leaders: the term of the disconnected one continues")
	}
	t.Logf("taken over after %v, on a quiet machine within 5 s", time.Since(begun))
	if second.id != "other" || second.epoch <= first.epoch {
		t.Errorf("%s leads with epoch %d after %d", second.id, second.epoch, first.epoch)
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	endpoint := testenv.Etcd(t)
	seen := discovery.Watch(t.Context(), dial(t, endpoint), "manager/")
	until := func(want map[string]string) {
		t.Helper()
		for !maps.Equal(next(t, seen, "change"), want) {
		}
	}
	until(map[string]string{})
	announce := func(c *clientv3.Client, id string) func() {
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		run.Go(func() { _ = discovery.Announce(ctx, c, "manager/", id, "at "+id) })
		stop := func() { cancel(); run.Wait() }
		t.Cleanup(stop)
		return stop
	}
	stopA := announce(dial(t, endpoint), "a")
	crashing := dial(t, endpoint)
	announce(crashing, "b")
	until(map[string]string{"a": "at a", "b": "at b"})
	stopA()
	until(map[string]string{"b": "at b"})

	// etcd forgets the lease: announced again.
	admin := dial(t, endpoint)
	res, err := admin.Get(t.Context(), "manager/b")
	if err != nil || len(res.Kvs) != 1 {
		t.Fatalf("keys %v (%v)", res, err)
	}
	if _, err := admin.Revoke(t.Context(), clientv3.LeaseID(res.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	until(map[string]string{})
	until(map[string]string{"b": "at b"})

	crashing.Close()
	begun := time.Now()
	until(map[string]string{})
	t.Logf("a dead process vanished after %v", time.Since(begun))
}
