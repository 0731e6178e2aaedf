package occupancy_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/occupancy"
)

// TestWhoLeavesDoesNotWaitForAnAudit runs one long audit, a caller that waits for it until its
// context ends, and a leader whose leadership ends in the meantime.
func TestWhoLeavesDoesNotWaitForAnAudit(t *testing.T) {
	client, db := identitytest.Store(t)
	w := identitytest.Fill(t, client)
	bus := event.New(nil, nil)
	s := occupancy.New(occupancy.Config{Client: client, Bus: bus, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	unlock, hangs := identitytest.Lock(t, db, "agents")
	audited := make(chan error, 1)
	go func() {
		_, err := s.AuditOccupancy(w.As(t, w.Superadmin))
		audited <- err
	}()
	hangs()
	ctx, leave := context.WithCancel(w.As(t, w.Superadmin))
	left := make(chan error, 1)
	go func() {
		_, err := s.AuditOccupancy(ctx)
		left <- err
	}()
	led := make(chan struct{})
	go func() {
		defer close(led)
		s.Lead(ctx, 1)
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller whose context ended got %v", err)
	}
	<-led
	unlock()
	if err := <-audited; err != nil {
		t.Error(err)
	}
}
