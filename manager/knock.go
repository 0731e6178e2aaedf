package manager

import (
	"context"
	"net/http"
	"net/netip"
	"sync"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// maxKnocks limits the open WebSockets of one address before their connection_init has
// authenticated them.
const maxKnocks = 20

// knocks counts WebSockets without credentials by address; for IPv6 by /64, which is one
// network.
type knocks struct {
	mu   sync.Mutex
	open map[netip.Prefix]int
}

type knockKey struct{}

// limit rejects WebSockets without credentials beyond maxKnocks of an address.
func (k *knocks) limit(address func(*http.Request) netip.Addr, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v := viewer.From(r.Context()); r.Header.Get("Upgrade") == "" || v != nil && !v.IsAnonymous() {
			next.ServeHTTP(w, r)
			return
		}
		from := network(address(r))
		if !k.enter(from) {
			problem.WriteHTTP(w, r, problem.Exhausted("too many connections from this address have not authenticated yet"))
			return
		}
		leave := sync.OnceFunc(func() { k.leave(from) })
		defer leave()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), knockKey{}, leave)))
	})
}

// known ends the count of a WebSocket after its authentication.
func known(ctx context.Context) {
	if leave, ok := ctx.Value(knockKey{}).(func()); ok {
		leave()
	}
}

func (k *knocks) enter(from netip.Prefix) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[from] >= maxKnocks {
		return false
	}
	if k.open == nil {
		k.open = map[netip.Prefix]int{}
	}
	k.open[from]++
	return true
}

func (k *knocks) leave(from netip.Prefix) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[from]--; k.open[from] == 0 {
		delete(k.open, from)
	}
}

func network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() && !a.Is4In6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // for an invalid address it is the zero value, which counts as one network too
	return p
}
