package serving

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/berthhq/berth/gateway/inference"
)

const (
	// maxBodies limits the bytes of the bodies of all requests at a time, and the next two those of one user, and those of
	// one network without a key.
	maxBodies        = 1 << 30
	maxOfUser        = 256 << 20
	maxOfNetwork     = 64 << 20
	maxOfAllNetworks = 256 << 20
	// slowBody is the time for which a client can send nothing of a body.
	slowBody = 30 * time.Second
)

// bodies counts the bytes of bodies, which the router has in memory until a request ends. The zero value is empty.
type bodies struct {
	mu       sync.Mutex
	all      int64
	visitors int64
	of       map[string]int64 // by tenant
}

// claim is the part of a request.
type claim struct {
	*bodies
	tenant  string
	visitor bool
	size    int64
}

// enter counts the body of a request until its claim is shrunk.
func (b *bodies) enter(tenant string, visitor bool, size int64) (*claim, error) {
	if size < 0 { // not known before it is read
		size = inference.MaxBody
	}
	size = min(size, inference.MaxBody) // a larger one is refused before it is read
	b.mu.Lock()
	defer b.mu.Unlock()
	most, who := int64(maxOfUser), "your user"
	if visitor {
		most, who = maxOfNetwork, "your network"
	}
	if b.of[tenant]+size > most {
		return nil, &inference.Limit{Message: fmt.Sprintf("%s has requests with %d MiB open at this gateway", who, most>>20), After: time.Second}
	}
	if b.all+size > maxBodies || visitor && b.visitors+size > maxOfAllNetworks {
		return nil, &inference.Unavailable{Message: "the gateway has too many large requests"}
	}
	if b.of == nil {
		b.of = map[string]int64{}
	}
	b.add(tenant, visitor, size)
	return &claim{b, tenant, visitor, size}, nil
}

// shrink frees the bytes of a claim above a size.
func (c *claim) shrink(to int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to < c.size {
		c.add(c.tenant, c.visitor, to-c.size)
		c.size = to
	}
}

func (b *bodies) add(tenant string, visitor bool, size int64) {
	b.all += size
	if visitor {
		b.visitors += size
	}
	if b.of[tenant] += size; b.of[tenant] == 0 {
		delete(b.of, tenant)
	}
}

// timely is a body whose client must send something from time to time.
type timely struct {
	io.ReadCloser
	conn  *http.ResponseController
	claim *claim
	read  int64
}

// Read implements io.Reader. At the end, the deadline is removed, because it would end the request, and the claim has the
// size of the body.
func (t *timely) Read(p []byte) (int, error) {
	_ = t.conn.SetReadDeadline(time.Now().Add(slowBody))
	n, err := t.ReadCloser.Read(p)
	t.read += int64(n)
	if err != nil {
		_ = t.conn.SetReadDeadline(time.Time{})
		t.claim.shrink(t.read)
	}
	return n, err
}
