package transfer

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// idle is how long an upload can send nothing before its connection is closed. No data is lost,
// because the client can resume.
const idle = time.Minute

// taken is how long a client can take to read a piece of a download. A piece has at most 1 MiB, so
// the minimum is 9 kB/s. A client that does not read keeps a file open; it can resume the download.
const (
	taken = 2 * time.Minute
	piece = 1 << 20
)

// deadlines sets the deadlines of one request. Each read and each write extends them until end
// is called.
type deadlines struct {
	control *http.ResponseController
	taken   time.Duration
	cancel  context.CancelFunc // cancels the request's context

	mu      sync.Mutex
	cause   error // why the request was ended, nil before that
	reading bool  // the request's body is being read
	cut     bool  // the connection's read deadline is in the past
}

func newDeadlines(w http.ResponseWriter, cancel context.CancelFunc) *deadlines {
	return &deadlines{control: http.NewResponseController(w), taken: taken, cancel: cancel}
}

// extendRead sets the deadline of the next read. Some connections do not support deadlines;
// only their client can end them.
func (p *deadlines) extendRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = true
	if p.cause == nil {
		_ = p.control.SetReadDeadline(time.Now().Add(idle))
	} else {
		p.stop()
	}
}

// refused is how long the rejection of a request waits for the rest of its body. net/http reads
// part of the body first, because a client that is still sending may not read the answer.
const refused = 2 * time.Second

// shorten reduces the time that a client without progress can delay a rejection.
func (p *deadlines) shorten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		_ = p.control.SetReadDeadline(time.Now().Add(refused))
	}
}

// clearRead removes the deadline after the last read, for the next request on the connection.
func (p *deadlines) clearRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = false
	if !p.cut {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}

// endCause returns the cause that was passed to end, or nil.
func (p *deadlines) endCause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// end makes a pending read of the body, and every later one, fail now, and cancels the context of
// the request. It sets no deadline for a request without a body: net/http reads from the connection
// to detect that the client has disconnected, would take the deadline for a disconnect, and would
// cancel the context of all later requests of the connection.
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

// spent reports whether the connection cannot serve another request.
func (p *deadlines) spent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// extendWrite sets the deadline of the next write.
func (p *deadlines) extendWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.taken))
	}
}

// begin removes the deadline that the previous request of the connection has set.
func (p *deadlines) begin() { _ = p.control.SetWriteDeadline(time.Time{}) }
