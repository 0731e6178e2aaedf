package transfer

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/containerd/errdefs"
)

// barred are the users whose tickets count no longer, and the transfers that
// are open.
type barred struct {
	mu    sync.Mutex
	users map[string]bool
	open  map[*exchange]struct{}
}

func errBarred() error {
	return fmt.Errorf("the ticket's user may not transfer any more: %w", errdefs.ErrPermissionDenied)
}

// Bar replaces the users whose tickets are refused, and ends their transfers.
func (s *Server) Bar(users []string) {
	set := make(map[string]bool, len(users))
	for _, u := range users {
		set[u] = true
	}
	s.barred.mu.Lock()
	defer s.barred.mu.Unlock()
	s.barred.users = set
	for x := range s.barred.open {
		if set[x.claims.User] {
			x.end()
		}
	}
}

// enter lets an exchange go on unless its user is barred.
func (b *barred) enter(x *exchange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users[x.claims.User] {
		return errBarred()
	}
	if b.open == nil {
		b.open = map[*exchange]struct{}{}
	}
	b.open[x] = struct{}{}
	return nil
}

func (b *barred) leave(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, x)
}

// end cuts the exchange off: what an upload sends is not read any more, what a
// download gets is not written.
func (x *exchange) end() {
	x.patience.end(errBarred())
	if x.kind != "upload" {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now())
	}
}
