package transfer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
)

// takeover is how long a new request waits until the request that has locked an upload has
// saved its bytes and released the lock.
const takeover = 5 * time.Second

// locks gives each upload to one request at a time. A new request ends the older one, which is
// most likely a connection that the client has given up. Between proxies on one volume,
// flock(2) on the staging file serializes requests, but does not end them: a new request waits
// up to the same time.
type locks struct {
	mu   sync.Mutex
	held map[string]*holder
}

type holder struct {
	end  func()        // asks the holder to release the lock
	gone chan struct{} // closed after the release
}

// take returns when the caller has the upload. The function end is called when another request
// wants the upload.
func (l *locks) take(ctx context.Context, id string, end func()) (release func(), err error) {
	mine := &holder{end: end, gone: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		l.mu.Lock()
		if l.held == nil {
			l.held = make(map[string]*holder)
		}
		other := l.held[id]
		if other == nil {
			l.held[id] = mine
		} else {
			other.end() // under the mutex: later its connection could already serve the next request
		}
		l.mu.Unlock()
		if other == nil {
			return func() {
				l.mu.Lock()
				delete(l.held, id)
				l.mu.Unlock()
				close(mine.gone)
			}, nil
		}
		select {
		case <-other.gone:
		case <-ctx.Done():
			return nil, fmt.Errorf("the upload is locked by another request: %w", errdefs.ErrConflict)
		}
	}
}
