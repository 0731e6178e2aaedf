package transfer

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// idle is how long an upload may send nothing before its connection ends. It
// loses nothing: the client resumes.
const idle = time.Minute

// taken is how long a client may take to read a piece of a download, which piece bounds:
// 9 kB a second at least. A client that reads nothing holds a file open, and resumes.
const (
	taken = 2 * time.Minute
	piece = 1 << 20
)

// deadlines are those of one request: they move on with every read and every write until
// someone ends them.
type deadlines struct {
	control *http.ResponseController
	taken   time.Duration
	cancel  context.CancelFunc // of the request's context

	mu      sync.Mutex
	cause   error // why it ended
	reading bool  // the request's body
	cut     bool  // the connection has a read deadline in the past
}

func newDeadlines(w http.ResponseWriter, cancel context.CancelFunc) *deadlines {
	return &deadlines{control: http.NewResponseController(w), taken: taken, cancel: cancel}
}

// more gives the next read its time. Not every connection has deadlines; one
// without can only be ended by its client.
func (p *deadlines) more() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = true
	if p.cause == nil {
		_ = p.control.SetReadDeadline(time.Now().Add(idle))
	} else {
		p.stop()
	}
}

// refused is how long an answer that refuses a request waits for the rest of it.
// net/http reads some of it first, since a client that still sends may not look.
const refused = 2 * time.Second

// shorten lets a client that sends nothing hold up its own refusal no longer.
func (p *deadlines) shorten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		_ = p.control.SetReadDeadline(time.Now().Add(refused))
	}
}

// over takes the deadline off after the last read, for the next request on
// the connection.
func (p *deadlines) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = false
	if !p.cut {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}

// gone is why someone ended it, nil when no one did.
func (p *deadlines) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// end makes a pending read of the body, and every later one, fail now, and ends the
// context of the request. It leaves the connection of a request without a body alone:
// net/http listens there for the client to go, takes a deadline for that, and ends the
// context of all requests to come on the connection.
func (p *deadlines) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = cause
	if p.reading {
		p.stop()
	}
	p.cancel()
}

func (p *deadlines) stop() {
	p.cut = true
	_ = p.control.SetReadDeadline(time.Now())
}

// spent reports whether the connection is of no use to another request.
func (p *deadlines) spent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// write gives the next write its time.
func (p *deadlines) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.taken))
	}
}

// begin takes off what the last request of the connection left.
func (p *deadlines) begin() { _ = p.control.SetWriteDeadline(time.Time{}) }
