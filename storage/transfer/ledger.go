package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// ledger remembers what was promised to uploads and is not yet in the usage
// that a plugin reports, so that many uploads at once cannot pass a
// cooperative limit together. It is lost with the process, as the limit's
// precision allows.
type ledger struct {
	mu      sync.Mutex
	entries map[string]map[string]*promise // scope → upload
}

type promise struct {
	left int64     // still to come
	done time.Time // when it was published; zero while under way
	size int64
}

func scopeKey(c ticket.Claims) string { return c.Volume + "/" + c.Scope }

// promise notes an upload and how much of it is still to come.
func (l *ledger) promise(c ticket.Claims, id string, left int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[string]map[string]*promise)
	}
	key := scopeKey(c)
	if l.entries[key] == nil {
		l.entries[key] = make(map[string]*promise)
	}
	p := &promise{left: left, size: c.Size}
	if left == 0 {
		p.done = time.Now()
	}
	l.entries[key][id] = p
}

func (l *ledger) forget(c ticket.Claims, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries[scopeKey(c)], id)
}

// outstanding is what is promised in a scope and not in a usage of that age.
func (l *ledger) outstanding(c ticket.Claims, asOf time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum int64
	for id, p := range l.entries[scopeKey(c)] {
		switch {
		case p.done.IsZero():
			sum += p.left
		case p.done.After(asOf):
			sum += p.size
		default:
			delete(l.entries[scopeKey(c)], id)
		}
	}
	return sum
}

// admit refuses an upload that the scope's limit has no room for.
func (s *Server) admit(ctx context.Context, v *volume.Volume, c ticket.Claims) error {
	scope, err := v.Limit(ctx, c.Scope)
	if err != nil {
		return err
	}
	limit, err := volume.Over(scope, c.Size, func(asOf time.Time) int64 { return s.ledger.outstanding(c, asOf) })
	if err != nil {
		return noRoom(limit, "upload of %v", err)
	}
	return v.Room(c.Size)
}

// explain names the limit that a product has kept itself.
func (s *Server) explain(c ticket.Claims, err error) error {
	if !errors.Is(err, errLimit) {
		return err
	}
	v, verr := s.cfg.Volumes.Get(c.Volume)
	if verr != nil {
		return err
	}
	scope := v.LastScope(c.Scope)
	if most := scope.GetLimit().GetInodes(); most > 0 && scope.GetUsedInodes() >= most {
		return noRoom(&most, "write upload: the scope's limit of %d files and directories is reached; the upload goes on when there is room", most)
	}
	limit := scope.GetLimit().GetBytes()
	if limit == 0 {
		return err
	}
	return noRoom(&limit, "write upload: the scope's limit of %d bytes is reached; the upload goes on when there is room", limit)
}

func noRoom(limit *int64, format string, args ...any) error {
	return &problem{
		status: http.StatusInsufficientStorage, code: "RESOURCE_EXHAUSTED", limit: limit, detail: fmt.Sprintf(format, args...),
	}
}
