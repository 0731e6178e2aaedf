package main

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// patience is how long a call waits for a walk that it started: about 50,000
// files. After that it answers with the older figure, or none, and the walk
// goes on for the next caller.
const patience = 250 * time.Millisecond

// usage is the last measurement of a scope and the walk under way, if any.
type usage struct {
	last    *volumepb.TreeUsageReport
	at      time.Time
	walking chan struct{} // nil when idle; closed at the end
}

// measure returns the scope's usage: exact when it is fresh, older and marked
// so while a long walk is under way, nil while there is none yet.
func (d *directory) measure(ctx context.Context, scope string) *volumepb.TreeUsageReport {
	d.mu.Lock()
	u := d.usage[scope]
	if u == nil {
		u = &usage{}
		d.usage[scope] = u
	}
	if u.last != nil && time.Since(u.at) < d.maxAge {
		defer d.mu.Unlock()
		return u.last
	}
	if u.walking == nil && d.ctx.Err() == nil {
		u.walking = make(chan struct{})
		d.walks.Add(1)
		go d.walk(scope, u)
	}
	walking := u.walking
	d.mu.Unlock()

	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-walking:
	case <-wait.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if u.last == nil || u.walking == nil {
		return u.last
	}
	old := proto.CloneOf(u.last)
	old.Exact = false
	return old
}

func (d *directory) walk(scope string, u *usage) {
	defer d.walks.Done()
	started := time.Now()
	report, err := volume.Usage(d.ctx, filepath.Join(d.path, scope))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		u.last, u.at = report, started
	}
	close(u.walking)
	u.walking = nil
}

// forget drops what is known of a scope that is gone.
func (d *directory) forget(scope string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.usage, scope)
}
