package transfer

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/ticket"
)

// Barred says whose tickets count no longer.
type Barred struct {
	Users map[string]bool
	// Folders: tickets for one that were issued to the user before then.
	Folders map[UserFolder]time.Time
}

// UserFolder is a user and a folder, as tickets name them.
type UserFolder struct{ User, Folder string }

func (b Barred) has(c ticket.Claims) bool {
	since, less := b.Folders[UserFolder{c.User, c.Folder}]
	return b.Users[c.User] || less && c.Issued.Before(since)
}

// gate holds transfers to who is barred.
type gate struct {
	mu     sync.Mutex
	barred Barred
	open   map[*exchange]struct{}
}

func errBarred() error {
	return fmt.Errorf("the ticket's user may not transfer this any more: %w", errdefs.ErrPermissionDenied)
}

// Bar replaces whose tickets are refused, and ends their transfers.
func (s *Server) Bar(b Barred) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.barred = b
	for x := range s.gate.open {
		if b.has(x.claims) {
			x.end()
		}
	}
}

// enter lets an exchange continue unless its ticket is barred.
func (g *gate) enter(x *exchange) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barred.has(x.claims) {
		return errBarred()
	}
	if g.open == nil {
		g.open = map[*exchange]struct{}{}
	}
	g.open[x] = struct{}{}
	return nil
}

func (g *gate) leave(x *exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, x)
}

// end cuts the exchange off: what an upload sends is not read any more, what a
// download gets is not written.
func (x *exchange) end() {
	x.deadline.end(errBarred())
	if x.kind != "upload" {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now())
	}
}
