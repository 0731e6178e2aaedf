package event_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/event"
)

func TestGatheringMissesNothing(t *testing.T) {
	b := event.New(goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := b.Gather(ctx, []event.Topic{event.Session, event.Pending}, "me")
	if n := g.Take(); len(n.Changed) > 0 || n.Lagged {
		t.Errorf("news before there was any: %v", n)
	}
	want := map[uuid.UUID]bool{}
	for range 5000 {
		id := uuid.New()
		want[id] = true
		b.Publish(ctx, event.Event{Topic: event.Session, ID: id})
		b.Publish(ctx, event.Event{Topic: event.Session, ID: id})
		b.Publish(ctx, event.Event{Topic: event.Session, ID: uuid.New(), By: "me"})
		b.Publish(ctx, event.Event{Topic: event.Task, ID: uuid.New()})
	}
	b.Publish(ctx, event.Event{Topic: event.Pending})
	<-g.Wake()
	n := g.Take()
	if len(n.Changed) != 2 || len(n.Changed[event.Session]) != len(want) {
		t.Errorf("%d topics, %d sessions", len(n.Changed), len(n.Changed[event.Session]))
	}
	for id := range want {
		if !n.Changed[event.Session][id] {
			t.Fatalf("session %s is missed", id)
		}
	}
	if _, ok := n.Changed[event.Pending]; !ok || n.Lagged {
		t.Errorf("events without an ID, or lagged: %v", n.Lagged)
	}
	if n := g.Take(); len(n.Changed) > 0 {
		t.Errorf("taken twice: %v", n)
	}
	id := uuid.New()
	b.Publish(ctx, event.Event{Topic: event.Session, ID: id, By: "another"})
	<-g.Wake()
	if n := g.Take(); !n.Changed[event.Session][id] {
		t.Error("changes of another loop are missing")
	}
}
