package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is something that goes wrong with requests.
type Fault struct {
	Method string // empty = any
	Path   string // what the request's path begins with
	Skip   int    // this many such requests are well before
	Times  int    // this many are not; 0 = until it is removed

	// Delay passes before anything else happens.
	Delay time.Duration
	// Status is answered in the product's place; 0 lets the product answer.
	Status     int
	RetryAfter time.Duration // in the answer's header; 0 = none
	Body       string        // of the answer; empty = what the product says of the status
	// Echo has the answer repeat, in each of its texts, what the request proved with who
	// sent it.
	Echo bool
	// Expire ends every token first, so that the product does not know its client
	// any longer.
	Expire bool
	// Drop cuts the connection without an answer; Lost does so after the product
	// has done what it was asked.
	Drop, Lost bool
}

type fault struct {
	Fault
	seen int
}

// Inject makes a fault; of several that match a request the first counts.
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

// hit finds the fault of a request.
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

// misbehave does what a fault says, and reports whether the product shall answer.
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
