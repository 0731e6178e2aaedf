package serving

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/deployment/load"
)

const (
	// byWaiting marks events of gateways about requests that wait: the leader looks at the deployment, gateways do not.
	byWaiting = "waiting"
	// wakeEvery is the time between two events about a deployment with requests that wait.
	wakeEvery = 200 * time.Millisecond
	storeTime = 2 * time.Second
)

// waits notes that the number of requests that wait for a deployment has changed. The router calls it with a lock.
func (f *fleet) waits(d *model, waiting int) {
	if waiting == 0 {
		return
	}
	d.wake.Store(true)
	select {
	case f.wakes <- struct{}{}:
	default:
	}
}

// report stores what this gateway measures, every second and when a request begins to wait, until ctx ends.
func (f *fleet) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	again := time.NewTimer(wakeEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			f.leave(ctx)
			return
		case <-tick.C:
			f.all(ctx)
		case <-f.wakes:
			f.wakeAll(ctx, again)
		case <-again.C:
			f.wakeAll(ctx, again)
		}
	}
}

// wakeAll makes the leader look at the deployments that requests wait for.
func (f *fleet) wakeAll(ctx context.Context, again *time.Timer) {
	for _, d := range f.list() {
		if !d.wake.Load() {
			continue
		}
		if wait := wakeEvery - time.Since(d.woken); wait > 0 {
			again.Reset(wait)
			continue
		}
		d.wake.Store(false)
		d.woken = time.Now()
		f.put(ctx, d)
		f.Bus.Publish(ctx, event.Event{Topic: event.Deployment, ID: d.id, By: byWaiting})
	}
}

func (f *fleet) list() []*model {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*model, 0, len(f.m))
	for _, d := range f.m {
		out = append(out, d)
	}
	return out
}

// all stores the reports about all deployments in use, and forgets those that are not used.
func (f *fleet) all(ctx context.Context) {
	open, waiting, ejected, away := 0, 0, 0, false
	for _, d := range f.list() {
		busy := false
		now := d.model.State()
		waiting += now.Waiting
		for _, r := range now.Replicas {
			open += r.Outstanding
			busy = busy || r.Outstanding > 0
			if r.Ejected {
				ejected++
			}
		}
		if busy = busy || now.Waiting > 0; !busy && f.drop(d) {
			f.remove(ctx, d.id)
			continue
		}
		away = away || !f.put(ctx, d) // one attempt is enough while Redis is away
	}
	f.meter.open.Set(float64(open))
	f.meter.waiting.Set(float64(waiting))
	f.meter.ejected.Set(float64(ejected))
}

// drop forgets a deployment that has ended or had no request for some time, and reports whether it did.
func (f *fleet) drop(d *model) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone && time.Since(d.last) < usedFor {
		return false
	}
	for _, r := range d.replicas {
		r.close()
	}
	delete(f.m, d.id)
	return true
}

// measure returns what this gateway measures of a deployment. The version is read before the requests, so that a request
// at a replica that is drained in this version is counted.
func (d *model) measure(now time.Time) load.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := load.Report{Version: d.version, LastRequest: d.last, Replicas: map[uuid.UUID]load.Replica{}}
	s := d.model.State()
	r.Waiting = s.Waiting
	busy := s.Waiting > 0
	for _, one := range s.Replicas {
		x, id := d.replicas[one.ID], uuid.MustParse(one.ID)
		if x == nil {
			continue
		}
		r.Replicas[id] = load.Replica{Revision: x.revision, InFlight: one.Outstanding, Ejected: one.Ejected, Window: x.window.sum(now)}
		busy = busy || one.Outstanding > 0
	}
	if busy {
		r.LastRequest = now
	}
	return r
}

// put stores the report about a deployment, and reports whether it did.
func (f *fleet) put(ctx context.Context, d *model) bool {
	limited, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := f.loads.Put(limited, f.Gateway, d.id, d.measure(time.Now()))
	if err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "report the load of a deployment", "deployment", d.id, "error", err)
	}
	return err == nil
}

func (f *fleet) remove(ctx context.Context, ids ...uuid.UUID) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := f.loads.Remove(ctx, f.Gateway, ids...); err != nil && ctx.Err() == nil {
		f.Logger.WarnContext(ctx, "remove the reports of a deployment", "error", err)
	}
}

// leave removes all reports of this gateway, which ends.
func (f *fleet) leave(ctx context.Context) {
	var ids []uuid.UUID
	for _, d := range f.list() {
		ids = append(ids, d.id)
	}
	if len(ids) > 0 {
		f.remove(context.WithoutCancel(ctx), ids...)
	}
}
