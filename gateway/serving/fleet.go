package serving

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/store"
)

// fleet is the deployments that this gateway serves: those that got a request in the last minutes.
type fleet struct {
	*Service
	loads *load.Store
	wakes chan struct{} // a request waits

	mu sync.Mutex
	m  map[uuid.UUID]*model
}

func (f *fleet) init(s *Service, loads *load.Store) {
	f.Service, f.loads, f.wakes, f.m = s, loads, make(chan struct{}, 1), map[uuid.UUID]*model{}
}

// model is a deployment in use.
type model struct {
	id     uuid.UUID
	model  *inference.Model
	loaded chan struct{} // closed when the first read has ended

	mu       sync.Mutex
	err      error // of the first read
	version  int
	replicas map[string]*replica
	last     time.Time // request
	ended    bool      // it gets no requests again
	recorded bool      // requests are recorded for the owner
	weights  map[int]int
	gone     bool // it has no replica

	stale atomic.Bool // an event came during the first read
	wake  atomic.Bool // a request began to wait, and no report says so
	woken time.Time   // of the last report because of a request that waits; only the loop of reports uses it
}

// use returns a deployment for a request, and reads it first if it is not in use.
func (f *fleet) use(ctx context.Context, id uuid.UUID, name string) (*model, error) {
	f.mu.Lock()
	d, is := f.m[id]
	if !is {
		d = f.newModel(id, name)
		f.m[id] = d
	}
	d.mu.Lock()
	d.last = time.Now()
	d.mu.Unlock()
	f.mu.Unlock()
	if !is {
		f.load(context.WithoutCancel(ctx), d) // for all requests that wait for it; at most readTime
	}
	select {
	case <-d.loaded:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return nil, d.err
	case d.ended:
		return nil, unknown(d.model.Name)
	}
	return d, nil
}

func (f *fleet) newModel(id uuid.UUID, name string) *model {
	d := &model{id: id, loaded: make(chan struct{}), replicas: map[string]*replica{}, version: 1}
	d.model = inference.NewModel(name, func(waiting int) { f.waits(d, waiting) })
	return d
}

// load reads a deployment that was not in use. It reports before, so that the leader does not end a replica between the
// read and the first report: either the leader sees the report, or the read sees that the replica is drained.
func (f *fleet) load(ctx context.Context, d *model) {
	defer close(d.loaded)
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f.put(ctx, d)
	err := f.read(ctx, func(ctx context.Context) error {
		err := f.update(ctx, d)
		if err == nil && d.stale.Load() {
			err = f.update(ctx, d)
		}
		return err
	})
	if err == nil {
		return
	}
	d.mu.Lock()
	d.err = f.away(ctx, "read a deployment", err)
	d.mu.Unlock()
	f.mu.Lock()
	delete(f.m, d.id) // the next request tries again
	f.mu.Unlock()
}

// refresh reads the deployments in use again, or one of them.
func (f *fleet) refresh(ctx context.Context, only uuid.UUID) {
	f.mu.Lock()
	var list []*model
	if only == uuid.Nil {
		list = slices.Collect(maps.Values(f.m))
	} else if d := f.m[only]; d != nil {
		list = []*model{d}
	}
	f.mu.Unlock()
	list = slices.DeleteFunc(list, func(d *model) bool {
		select {
		case <-d.loaded:
			return false
		default:
			d.stale.Store(true) // load reads it
			return true
		}
	})
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := f.update(ctx, list...); err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "read deployments", "error", err)
	}
}

// update reads deployments and gives their models the replicas.
func (f *fleet) update(ctx context.Context, list ...*model) error {
	ids := make([]uuid.UUID, len(list))
	for i, d := range list {
		ids[i] = d.id
	}
	ctx = viewer.SystemContext(store.StatementTimeout(ctx, readTime))
	seen, err := f.look(ctx, ids)
	if err != nil {
		return err
	}
	for _, d := range list {
		f.apply(d, seen[d.id])
	}
	return nil
}

// apply gives a model the replicas that a read has found; nil: the deployment has ended.
func (f *fleet) apply(d *model, now *state) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now == nil || now.ending {
		d.ended = true
		d.model.End()
	}
	if now == nil {
		d.gone = true
		for _, r := range d.replicas {
			r.close()
		}
		d.replicas = map[string]*replica{}
		d.model.Update()
		return
	}
	if now.version < d.version { // an older read that took longer
		return
	}
	next := map[string]*replica{}
	var targets []inference.Target
	for _, row := range now.replicas {
		if !row.gets() {
			continue
		}
		id := row.id.String()
		r := d.replicas[id]
		if r == nil || r.place != row.place {
			last := r
			r = f.newReplica(row)
			if last != nil {
				r.window = last.window
				last.close()
			}
		}
		next[id] = r
		targets = append(targets, inference.Target{ID: id, Transport: r.transport, Weight: now.weight(row), Group: row.revision, Named: now.named(row), Limit: now.concurrency,
			Near: f.Zone != "" && row.zone == f.Zone})
	}
	for id, r := range d.replicas {
		if next[id] == nil {
			r.close()
		}
	}
	d.replicas = next
	d.model.Update(targets...)
	d.model.Report(now.progress())
	d.weights, d.recorded = now.weights, now.recorded
	d.version = now.version // after Update, because the report promises it
}

// count counts a request that has ended.
func (d *model) count(r inference.Record, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.replicas[r.Replica]; x != nil {
		x.window.add(r, now)
	}
}
