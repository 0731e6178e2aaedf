package cluster

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// A node calls the services that its manager has for its role, and those of no other.
func TestNodeCallsManager(t *testing.T) {
	s := newSite(t)
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health.NewServer())
	t.Cleanup(srv.Stop)
	s.services = map[string]*grpc.Server{RoleStorage: srv}
	m := s.manager(t, "127.0.0.1:0")
	for role, want := range map[string]codes.Code{RoleStorage: codes.OK, RoleAgent: codes.DeadlineExceeded} {
		cfg := s.node(t, "n-"+role, m.addr)
		cfg.Role, cfg.JoinToken = role, s.token(role)
		n, stop := serve(t, cfg)
		m.next(t)
		wait := timeout
		if want != codes.OK {
			wait = 2 * time.Second // for an answer that does not come
		}
		clients := n.Clients()
		if len(clients) != 1 {
			t.Fatalf("%s: %d managers", role, len(clients))
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, err := healthpb.NewHealthClient(clients[0]).Check(ctx, &healthpb.HealthCheckRequest{})
		cancel()
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", role, err, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(n.Clients()) != 0 {
			t.Errorf("%s: a manager stays after the tunnel", role)
		}
	}
}
