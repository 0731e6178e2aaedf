package transfer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
)

// takeover is how long a newcomer waits for the request that holds an upload
// to save what it has and let go.
const takeover = 5 * time.Second

// locks give each upload to one request at a time. A newcomer ends the
// holder: it is most likely a connection the client has given up long ago.
// Between proxies on one volume, flock(2) on the staging file does the same
// without the ending: a newcomer waits there as long.
type locks struct {
	mu   sync.Mutex
	held map[string]*holder
}

type holder struct {
	end  func()        // asks the holder to let go; only while it holds
	gone chan struct{} // closed when it has
}

// take returns when the upload is the caller's; end is called when another
// request wants it.
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
			other.end() // not later: its connection may have the next request by then
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
			return nil, fmt.Errorf("upload is held by another request: %w", errdefs.ErrConflict)
		}
	}
}
