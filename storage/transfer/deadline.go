package transfer

import (
	"net/http"
	"sync"
	"time"
)

// idle is how long an upload may send nothing before its connection ends. It
// loses nothing: the client resumes.
const idle = time.Minute

// readDeadline is the read deadline of one request: it moves on with every read
// until somebody ends it.
type readDeadline struct {
	control *http.ResponseController

	mu    sync.Mutex
	cause error // why it ended
}

func newReadDeadline(w http.ResponseWriter) *readDeadline {
	return &readDeadline{control: http.NewResponseController(w)}
}

// more gives the next read its time. Not every connection has deadlines; one
// without can only be ended by its client.
func (p *readDeadline) more() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		_ = p.control.SetReadDeadline(time.Now().Add(idle))
	}
}

// refused is how long an answer that refuses a request waits for the rest of it.
// net/http reads some of it first, since a client that still sends may not look.
const refused = 2 * time.Second

// shorten lets a client that sends nothing hold up its own refusal no longer.
func (p *readDeadline) shorten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		_ = p.control.SetReadDeadline(time.Now().Add(refused))
	}
}

// over takes the deadline off after the last read, for the next request on
// the connection.
func (p *readDeadline) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}

// gone is why somebody ended it, nil when nobody did.
func (p *readDeadline) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// end makes a pending read, and every later one, fail now.
func (p *readDeadline) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = cause
	_ = p.control.SetReadDeadline(time.Now())
}
