package event_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/service/redis"
	"github.com/berthhq/berth/internal/testenv"
)

const timeout = 2 * time.Minute

// bus runs one as a manager would.
func bus(t *testing.T, url string) *event.Bus {
	t.Helper()
	opt, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(opt)
	b := event.New(client, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
		_ = client.Close()
	})
	return b
}

// number is the data of the i-th event.
func number(i int) []byte { return fmt.Append(nil, i) }

func next(t *testing.T, ch <-chan event.Event) event.Event {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(timeout):
		t.Fatal("no event")
		return event.Event{}
	}
}

// connect sends events from one bus until the other receives one, because Redis drops events before
// the subscription has started.
func connect(t *testing.T, from, to *event.Bus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mark := event.Event{Topic: "connect", ID: uuid.New()}
	heard := to.Subscribe(ctx, "connect")
	deadline := time.After(timeout)
	for {
		from.Publish(ctx, mark)
		select {
		case e := <-heard:
			if e.ID == mark.ID {
				return
			}
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatal("buses are not connected")
		}
	}
}

func TestEventsReachEverySubscriberOnce(t *testing.T) {
	url := testenv.Redis(t)
	a, b := bus(t, url), bus(t, url)
	connect(t, a, b)
	connect(t, b, a)
	here, there := a.Subscribe(t.Context(), event.Session), b.Subscribe(t.Context(), event.Session)
	var want []event.Event
	for i := range 100 {
		e := event.Event{Topic: event.Session, ID: uuid.New(), Data: number(i)}
		want = append(want, e)
		a.Publish(t.Context(), e)
		a.Publish(t.Context(), event.Event{Topic: event.Agent, ID: uuid.New()})
	}
	// The way back is complete when b has received its own event.
	end := event.Event{Topic: event.Session, ID: uuid.New(), Data: number(-1)}
	for where, ch := range map[string]<-chan event.Event{"same process": here, "another process": there} {
		var got []event.Event
		for range want {
			got = append(got, next(t, ch))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
	b.Publish(t.Context(), end)
	if got := next(t, here); got.ID != end.ID {
		t.Errorf("an own event came back: %v", got)
	}
}

func TestSlowSubscriberFindsOneMarker(t *testing.T) {
	b := event.New(goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	slow, quick := b.Subscribe(ctx), b.Subscribe(ctx, event.Task)
	const n = 5000
	for i := range n {
		b.Publish(ctx, event.Event{Topic: event.Task, Data: number(i)})
		if e := <-quick; !bytes.Equal(e.Data, number(i)) || e.Topic != event.Task {
			t.Fatalf("quick subscriber got %v, want version %d", e, i)
		}
	}
	for i := 0; ; i++ {
		e := <-slow
		if e.Topic == event.Lagged {
			if i == 0 || i > 1000 {
				t.Errorf("marker after %d events", i)
			}
			break
		}
		if !bytes.Equal(e.Data, number(i)) {
			t.Fatalf("event %d has version %d", i, e.Data)
		}
	}
	if len(slow) != 0 {
		t.Errorf("%d events behind the marker", len(slow))
	}
	b.Publish(ctx, event.Event{Topic: event.Task, Data: number(n)})
	if e := <-slow; !bytes.Equal(e.Data, number(n)) {
		t.Errorf("after the marker came %v, want version %d", e, n)
	}
	cancel()
	for range slow { // ends when the channel is closed
	}
}

func TestRedisDies(t *testing.T) {
	srv, err := redis.Start(t.Context(), redis.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	a, b := bus(t, srv.URL()), bus(t, srv.URL())
	connect(t, a, b)
	here, there := a.Subscribe(t.Context(), event.Agent), b.Subscribe(t.Context(), event.Agent)
	if err := syscall.Kill(srv.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Publish never waits for Redis, and own subscribers miss nothing.
	for i := range 100 {
		if got := publishAndRead(t, a, here, number(i)); !bytes.Equal(got, number(i)) {
			t.Fatalf("got event %s, want %d", got, i)
		}
	}
	// Other processes learn that events were lost, and receive events once Redis is back.
	for next(t, there).Topic != event.Lagged {
	}
	connect(t, a, b)
	for !bytes.Equal(publishAndRead(t, a, there, number(1000)), number(1000)) {
	}
}

// publishAndRead publishes an event and returns the data of the next event that a subscriber reads.
// A subscriber with an unread Lagged event receives no other, so the event is published again after
// each Lagged event.
func publishAndRead(t *testing.T, from *event.Bus, ch <-chan event.Event, data []byte) []byte {
	t.Helper()
	for {
		from.Publish(t.Context(), event.Event{Topic: event.Agent, Data: data})
		if got := next(t, ch); got.Topic != event.Lagged {
			return got.Data
		}
	}
}

// While Redis is unavailable, subscribers keep reading, because they get no events.
func TestRedisIsAway(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	b := event.New(client, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
		_ = client.Close()
	})
	changes := b.Subscribe(ctx, event.Session)
	for range 3 {
		if e := next(t, changes); e.Topic != event.Lagged {
			t.Fatalf("got %v", e)
		}
	}
}
