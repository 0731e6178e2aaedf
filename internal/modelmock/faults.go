package modelmock

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Fault is what goes wrong with requests for answers.
type Fault struct {
	// Status, if set, is the answer to requests.
	Status int `json:"status,omitempty"`
	// Hang keeps requests open without an answer until the client leaves.
	Hang bool `json:"hang,omitempty"`
	// CutAfter, if above 0, closes the connection after this number of tokens of a stream.
	CutAfter int `json:"cutAfter,omitempty"`
	// Delay is added before the answer.
	Delay time.Duration `json:"delay,omitempty"`
	// Times limits the requests with the fault; 0: until it is replaced.
	Times int `json:"times,omitempty"`
	// Unhealthy makes /health fail too.
	Unhealthy bool `json:"unhealthy,omitempty"`
}

type faults struct {
	mu    sync.Mutex
	fault Fault
	left  int
}

func (f *faults) set(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.left = fault, fault.Times
}

func (f *faults) unhealthy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault.Unhealthy
}

// take returns the fault of the next request.
func (f *faults) take() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault.Times > 0 {
		if f.left == 0 {
			return Fault{}
		}
		f.left--
	}
	return f.fault
}

// Fail sets the fault of the following requests. PUT /mock/fault does the same from outside.
func (e *Engine) Fail(f Fault) { e.faults.set(f) }

func (e *Engine) putFault(rw http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		fail(rw, http.StatusBadRequest, "fault: "+err.Error())
		return
	}
	e.Fail(f)
	rw.WriteHeader(http.StatusNoContent)
}

// spoil applies the fault of a request, and reports whether the request has its answer.
func (f Fault) spoil(rw http.ResponseWriter, r *http.Request) bool {
	if f.Hang {
		<-r.Context().Done()
		return true
	}
	if f.Delay > 0 {
		if pause(r.Context(), 1, float64(time.Second)/float64(f.Delay)) != nil {
			return true
		}
	}
	if f.Status != 0 {
		fail(rw, f.Status, "fault on request")
		return true
	}
	return false
}
