package event_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// TestDelayIsMeasured has a bus measure how long its own events take to come back.
func TestDelayIsMeasured(t *testing.T) {
	opt, err := goredis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(opt)
	t.Cleanup(func() { _ = client.Close() })
	registry := prometheus.NewRegistry()
	b := event.New(client, nil)
	b.Measure(registry)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.Run(ctx)
	}()
	wait.Until(t, "an event comes back", func() bool {
		b.Publish(ctx, event.Event{Topic: event.Session, ID: uuid.New()}) // Redis forgets those before the subscription
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		measured := uint64(0)
		for _, f := range families {
			if f.GetName() == "berth_event_delay_seconds" {
				measured = f.Metric[0].GetHistogram().GetSampleCount()
			}
		}
		return measured > 0
	})
	cancel()
	<-ended
}

// TestRequestsAreRemembered has another manager know which request changed an entity.
func TestRequestsAreRemembered(t *testing.T) {
	url := testenv.Redis(t)
	a, b := bus(t, url), bus(t, url)
	connect(t, a, b)
	heard := b.Subscribe(t.Context(), event.Session)
	id := uuid.New()
	a.Publish(requestid.With(t.Context(), "asked-for-it"), event.Event{Topic: event.Session, ID: id})
	next(t, heard)
	a.Publish(t.Context(), event.Event{Topic: event.Session, ID: id}) // a loop moves it on
	next(t, heard)
	for name, bus := range map[string]*event.Bus{"its own": a, "another": b} {
		if got := bus.Request(id); got != "asked-for-it" {
			t.Errorf("%s manager logs the request as %q", name, got)
		}
	}
	if got := b.Request(uuid.New()); got != "" {
		t.Errorf("of an unknown entity: %q", got)
	}
	for range 10_000 { // memory is bounded: the request is forgotten, not the bus
		b.Publish(requestid.With(t.Context(), "other"), event.Event{Topic: event.Task, ID: uuid.New()})
	}
	if got := b.Request(id); got != "" {
		t.Errorf("remembered after 10,000 others: %q", got)
	}
}
