package serving

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/portstream"
)

const (
	idleConns     = 64 // to one replica
	idleConnTime  = 30 * time.Second
	maxEngineHead = 64 << 10 // bytes of the header of an answer
)

// replica is a target of the router.
type replica struct {
	place
	revision  int
	transport *http.Transport
	window    window
}

// newReplica returns a replica that is reached through the tunnel of its machine. Its requests are not activity of an
// app of the session.
func (s *Service) newReplica(r row) *replica {
	at := r.place
	dial := func(context.Context, string, string) (net.Conn, error) {
		ports, err := s.Agents.Streams(at.agent)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		base := s.base
		s.mu.Unlock()
		return portstream.Dial(base, ports, at.kernel, at.port) // connections outlive the request that opens them
	}
	return &replica{place: at, revision: r.revision, transport: &http.Transport{
		DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleConnTime,
		MaxResponseHeaderBytes: maxEngineHead,
	}}
}

// close closes the connections that no request uses. Others close when their requests have ended and they were not used
// for idleConnTime.
func (r *replica) close() { r.transport.CloseIdleConnections() }
