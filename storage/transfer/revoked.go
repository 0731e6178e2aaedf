package transfer

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/ticket"
)

// Revoked lists the users and folders whose tickets are no longer valid.
type Revoked struct {
	Users map[string]bool
	// Folders maps a user and a folder to a time: tickets for the folder that were issued to
	// the user before it are not valid.
	Folders map[UserFolder]time.Time
}

// UserFolder is a user and a folder as tickets name them.
type UserFolder struct{ User, Folder string }

func (b Revoked) has(c ticket.Claims) bool {
	since, less := b.Folders[UserFolder{c.User, c.Folder}]
	return b.Users[c.User] || less && c.Issued.Before(since)
}

// gate tracks the running transfers, so that they can be ended when their tickets are revoked.
type gate struct {
	mu      sync.Mutex
	revoked Revoked
	open    map[*exchange]struct{}
}

func errRevoked() error {
	return fmt.Errorf("the ticket's user can no longer transfer this: the permission was revoked: %w", errdefs.ErrPermissionDenied)
}

// Revoke replaces the list of revoked tickets and ends their transfers.
func (s *Server) Revoke(b Revoked) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.revoked = b
	for x := range s.gate.open {
		if b.has(x.claims) {
			x.end()
		}
	}
}

// enter registers an exchange, or returns an error if its ticket is revoked.
func (g *gate) enter(x *exchange) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked.has(x.claims) {
		return errRevoked()
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

// end ends an exchange: the body of an upload is not read any further, and the body of a download
// is not written any further.
func (x *exchange) end() {
	x.deadline.end(errRevoked())
	if x.kind != "upload" {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now())
	}
}
