package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a failure of requests.
type Fault struct {
	Method string // empty = any
	Path   string // prefix of the request's path
	Skip   int    // number of such requests that succeed before
	Times  int    // number of requests that fail; 0 = until it is removed

	// Delay precedes everything else.
	Delay time.Duration
	// Status replaces the product's response; 0 lets the product respond.
	Status     int
	RetryAfter time.Duration // header of the response; 0 = none
	Body       string        // of the response; empty = the product's error for the status
	// Echo makes the response repeat the request's credentials in each of its texts.
	Echo bool
	// Expire ends every token first, so that the product does not accept its client any longer.
	Expire bool
	// Drop closes the connection without a response; Lost does so after the product has processed
	// the request.
	Drop, Lost bool
}

type fault struct {
	Fault
	seen int
}

// Inject adds a fault. If several faults match a request, the first one applies.
func (a *Server) Inject(f Fault) (remove func()) {
	one := &fault{Fault: f}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, one)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.faults = slices.DeleteFunc(a.faults, func(other *fault) bool { return other == one })
	}
}

// hit returns the fault that applies to a request.
func (a *Server) hit(r *http.Request) Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.faults {
		if f.Method != "" && f.Method != r.Method || !strings.HasPrefix(r.URL.Path, f.Path) {
			continue
		}
		f.seen++
		if f.seen > f.Skip && (f.Times == 0 || f.seen <= f.Skip+f.Times) {
			return f.Fault
		}
	}
	return Fault{}
}

// misbehave applies a fault, and reports whether the product must respond.
func (a *Server) misbehave(w http.ResponseWriter, r *http.Request, f Fault) bool {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		case <-a.ctx.Done():
		}
	}
	if f.Expire {
		a.mu.Lock()
		all := slices.Clone(a.tokens)
		a.mu.Unlock()
		for _, t := range all {
			t.End()
		}
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return true
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	if p, ok := a.product.(ErrorFormatter); ok && f.Body == "" {
		answer := p.Refusal(f.Status)
		if f.Echo {
			answer = repeat(answer, a.proof(r))
		}
		JSON(w, f.Status, answer)
		return false
	}
	if json.Valid([]byte(f.Body)) {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
	return false
}
