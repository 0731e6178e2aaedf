package inference

import (
	"net/http"
	"sync"
	"time"
)

// Target is a replica of a model that is ready for requests.
type Target struct {
	ID string
	// Transport reaches the engine. The URL of a request has the host "replica".
	Transport http.RoundTripper
	// Weight is the share of requests relative to the other replicas; 0 = none.
	Weight int
	// Group is the part of the replicas that it belongs to, such as a revision. A group gets the sum of its weights.
	Group int
	// Named says that a request that names the group can get the replica although its weight is 0.
	Named bool
	// Limit is the number of requests that the replica gets at a time; 0 = no limit.
	Limit int
	// Near says that it is in the zone of the router.
	Near bool
}

const (
	// failuresToEject is the number of failures in a row after which a replica gets no requests.
	failuresToEject = 3
	// ejectFor is the first time without requests. It doubles with every failed probe, up to maxEject.
	ejectFor = time.Second
	maxEject = 30 * time.Second
)

// replica is a target with its state in this router.
type replica struct {
	Target

	mu          sync.Mutex
	outstanding int
	failures    int       // in a row
	ejected     time.Time // until then; zero: not ejected
	ejectedFor  time.Duration
	probing     bool // one request probes an ejected replica
}

// change takes what can change of a target. Requests read the ID without the lock.
func (r *replica) change(t Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Transport, r.Weight, r.Group, r.Named, r.Limit, r.Near = t.Transport, t.Weight, t.Group, t.Named, t.Limit, t.Near
}

func (r *replica) transport() http.RoundTripper {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Transport
}

// state is what the choice of a replica depends on.
type state struct {
	outstanding int
	weight      int
	group       int
	open        bool // can get a request
	named       bool // can get a request that names its group
	out         bool // ejected: it only gets a probe
	near        bool // in the zone of the router
}

func (r *replica) look(now time.Time) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := state{outstanding: r.outstanding, weight: r.Weight, group: r.Group, near: r.Near, out: !r.ejected.IsZero()}
	free := r.Limit == 0 || r.outstanding < r.Limit
	if s.out {
		free = free && !r.probing && now.After(r.ejected)
	}
	s.open, s.named = free && r.Weight > 0, free && (r.Weight > 0 || r.Named)
	return s
}

// take counts a request, and reports whether the replica can have it.
func (r *replica) take(now time.Time) bool { return r.takeIn(now, false) }

// takeIn is take for a request that names the replica's group or not.
func (r *replica) takeIn(now time.Time, named bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Weight == 0 && !(named && r.Named) || r.Limit > 0 && r.outstanding >= r.Limit {
		return false
	}
	if !r.ejected.IsZero() {
		if r.probing || now.Before(r.ejected) {
			return false
		}
		r.probing = true
	}
	r.outstanding++
	return true
}

// leave ends a request that take has counted. A client that left says nothing about the replica.
func (r *replica) leave(now time.Time, o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outstanding--
	probed := r.probing
	r.probing = false
	switch o {
	case answered:
		r.failures, r.ejected, r.ejectedFor = 0, time.Time{}, 0
	case failed:
		r.failures++
		if r.failures >= failuresToEject || probed {
			r.ejectedFor = min(max(2*r.ejectedFor, ejectFor), maxEject)
			r.ejected = now.Add(r.ejectedFor)
		}
	}
}

// outcome is what a request says about its replica.
type outcome int

const (
	answered outcome = iota
	failed
	abandoned
)
