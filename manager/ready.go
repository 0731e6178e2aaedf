package manager

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// readyTimeout bounds each check of /readyz.
const readyTimeout = 2 * time.Second

// readiness is one line of /readyz.
type readiness struct {
	name string
	// optional checks do not make the manager unready.
	optional bool
	check    func(context.Context) error
}

// checks lists what /readyz asks, in the order of its lines.
func (m *Manager) checks() []readiness {
	return []readiness{
		{name: "postgresql", check: m.db.PingContext},
		{name: "redis", optional: true, check: func(ctx context.Context) error { return m.redis.Ping(ctx).Err() }}, // it has only what may be lost
		{name: "etcd", check: m.pingEtcd},
	}
}

// ready reports for each store whether it answers. All are asked at once, so that
// one that hangs is not blamed on the others.
func (m *Manager) ready(w http.ResponseWriter, r *http.Request) {
	checks := m.checks()
	errs := make([]error, len(checks))
	var leader string
	var all sync.WaitGroup
	all.Go(func() { leader = m.leaderState(r.Context()) })
	for i, c := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
			defer cancel()
			errs[i] = c.check(ctx)
		})
	}
	all.Wait()
	code := http.StatusOK
	for i, c := range checks {
		if errs[i] != nil && !c.optional {
			code = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	for i, c := range checks {
		state := "ok"
		if errs[i] != nil {
			state = "unavailable"
			m.log.Warn("not ready", "store", c.name, "error", errs[i])
		}
		fmt.Fprintf(w, "%s %s\n", c.name, state)
	}
	fmt.Fprintf(w, "leader %s\n", leader)
}

// leaderState returns ok, none or unknown. It does not change the status of /readyz: a
// manager answers people without a leader too, and to send people to no manager would help
// nobody.
func (m *Manager) leaderState(ctx context.Context) string {
	l, err := m.leader.Current(ctx)
	switch {
	case err != nil:
		return "unknown"
	case l == nil:
		return "none"
	}
	return "ok"
}

func (m *Manager) pingEtcd(ctx context.Context) error {
	_, err := m.etcd.Get(ctx, "/berth/leader")
	return err
}
