package inference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxWaiting limits the requests of a model that wait for a replica.
	maxWaiting = 100
	// waitTime limits the time for which a request waits.
	waitTime = 10 * time.Minute
	// lookEvery is the time between two looks for a replica that no event announced, and between two looks
	// at the progress of its start.
	lookEvery = 250 * time.Millisecond
	// commentEvery is the time after which a stream gets a comment although nothing changed, so that proxies do
	// not close it.
	commentEvery = 5 * time.Second
)

var errFull = fmt.Errorf("%d requests wait for a replica of the model already", maxWaiting)

// errEnded is the error of requests that waited for a model until it ended.
var errEnded = errors.New("the model has ended")

// room is where the requests of a model wait for a replica.
type room struct {
	wake func(waiting int) // tells how many wait; nil: no replica is started for them

	mu       sync.Mutex
	waiting  int
	changed  chan struct{} // closed at the next change of the replicas
	progress string        // of the start of a replica
	ended    bool          // no replica will come
}

func newRoom(wake func(int)) *room { return &room{wake: wake, changed: make(chan struct{})} }

// enter counts a request that waits.
func (r *room) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == maxWaiting {
		return errFull
	}
	r.waiting++
	r.tell()
	return nil
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	r.tell()
}

// tell must be fast: it is called with the lock, so that the numbers arrive in order.
func (r *room) tell() {
	if r.wake != nil {
		r.wake(r.waiting)
	}
}

// notify wakes the requests that wait, because a replica may have room.
func (r *room) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *room) look() (changed <-chan struct{}, progress string, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed, r.progress, r.ended
}

// End refuses the requests that wait: no replica of the model will take them. Requests at replicas are not cut.
func (m *Model) End() {
	m.room.mu.Lock()
	m.room.ended = true
	m.room.mu.Unlock()
	m.room.notify()
}

// Report says how far the start of a replica is. Streams that wait show it as a comment.
func (m *Model) Report(progress string) {
	m.room.mu.Lock()
	defer m.room.mu.Unlock()
	m.room.progress = progress
}

// await waits until a replica can take the request. It returns nil and an error if none does.
func (x *exchange) await(pick func() *replica) (*replica, error) {
	room := x.Model.room
	if room.wake == nil && !x.Model.set.any() {
		return nil, errNoReplica
	}
	if err := room.enter(); err != nil {
		return nil, err
	}
	defer room.leave()
	start := time.Now()
	defer func() { x.record.Waited = time.Since(start) }()
	ctx, cancel := context.WithTimeout(x.req.Context(), waitTime)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for told := (comment{}); ; {
		changed, progress, ended := room.look() // before the choice, so that no change is missed
		if chosen := pick(); chosen != nil {
			return chosen, nil
		}
		if ended {
			return nil, errEnded
		}
		if err := x.comment(&told, progress); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(errNoReplica, ctx.Err())
		}
	}
}

// comment is the last comment of a stream.
type comment struct {
	text string
	at   time.Time
}

// comment tells the client of a stream how far the start of a replica is.
func (x *exchange) comment(told *comment, progress string) error {
	if !x.body.stream || x.api.lines || progress == told.text && time.Since(told.at) < commentEvery {
		return nil
	}
	if told.at.IsZero() && progress == "" {
		progress = "waiting for a replica"
	}
	*told = comment{progress, time.Now()}
	x.header("text/event-stream; charset=utf-8", http.StatusOK)
	return x.send([]byte(": " + oneLine(progress) + "\n\n"))
}

// oneLine keeps a text from ending the comment that it is in.
func oneLine(text string) string {
	out := []rune(text)
	for i, r := range out {
		if r == '\n' || r == '\r' {
			out[i] = ' '
		}
	}
	return string(out)
}
