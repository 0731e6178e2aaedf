// Package event notifies managers of changes: at once in the same process, and through Redis in the
// others. An event only means that a subscriber should read the rows again, and any event can be
// lost. The manager's services publish events; loops and GraphQL subscriptions subscribe.
package event

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/requestid"
)

// Topic is the kind of object that an event is about.
type Topic string

// The topics. The ID of an event is that of the entity.
const (
	Session    Topic = "session"
	Agent      Topic = "agent"
	Vfolder    Topic = "vfolder"
	Share      Topic = "share"      // of a folder
	Login      Topic = "login"      // a credential was revoked
	Task       Topic = "task"       // a task waits, has made progress or has ended
	Pending    Topic = "pending"    // settings of the scheduler have changed; without ID
	Deployment Topic = "deployment" // its row or its replicas; gateways and the leader read it again
	Chat       Topic = "chat"       // its row, a turn or an answer; an answer waits for a gateway, or must stop
	Notice     Topic = "notice"     // a person has new notices; the ID is the person's
	Policy     Topic = "policy"     // limits of a resource policy have changed; without ID
	Revoked    Topic = "revoked"    // certificates of machines were revoked; without ID
	// Occupancy makes the leader compare the containers with the allocations; it has no ID.
	Occupancy Topic = "occupancy"
	// Lagged reports that events of any topic were lost here, so a subscriber reads its data again.
	// Every subscriber gets it, whatever its topics are.
	Lagged Topic = "lagged"
)

// Marks of events that loops can ignore.
const (
	// BySamples marks events that are only about new samples of an entity.
	BySamples = "samples"
	// ByReasons marks events of sessions whose pending reason alone has changed.
	ByReasons = "reasons"
)

// Event reports that an entity has changed.
type Event struct {
	Topic   Topic     `json:"t"`
	ID      uuid.UUID `json:"i,omitzero"`
	Data    []byte    `json:"d,omitempty"`
	By      string    `json:"b,omitempty"` // the loop that caused it, which can ignore it
	Request string    `json:"r,omitempty"` // id of the API request that caused it
}

const (
	// subscriberBuffer is the number of events that a subscriber can fall behind.
	subscriberBuffer = 256
	// outboxSize is the number of events that can wait for Redis.
	outboxSize = 4096
)

// Bus distributes events. New creates one.
type Bus struct {
	redis  redis.UniversalClient
	log    *slog.Logger
	origin string
	outbox chan Event
	meter  meter

	requests requests

	mu          sync.Mutex
	subscribers map[listener]struct{}
	hole        bool // an event never reached Redis
}

// New returns a bus that works inside this process; Run connects it to the
// others.
func New(client redis.UniversalClient, log *slog.Logger) *Bus {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Bus{
		redis: client, log: log, origin: uuid.NewString(),
		outbox:      make(chan Event, outboxSize),
		subscribers: map[listener]struct{}{}, meter: newMeter(nil),
	}
}

// Publish delivers the event to the subscribers of this process and queues it for Run, which sends
// it to the other managers. It never blocks.
func (b *Bus) Publish(ctx context.Context, e Event) {
	e.Request = requestid.From(ctx)
	b.deliver(e)
	select {
	case b.outbox <- e:
	default:
		b.lost()
	}
}

// Subscribe returns the events of the topics, or of all topics if none is named. The channel is
// closed after ctx ends. A subscriber that falls behind gets one Lagged event instead of the lost
// events.
func (b *Bus) Subscribe(ctx context.Context, topics ...Topic) <-chan Event {
	s := &subscriber{topics: topics, ch: make(chan Event, subscriberBuffer+1)}
	b.add(ctx, s, func() { close(s.ch) })
	return s.ch
}

// listener receives events, under the bus's lock.
type listener interface {
	put(e Event)
	mark() // called when events were lost
}

// add delivers events to l until ctx ends, and then calls end.
func (b *Bus) add(ctx context.Context, l listener, end func()) {
	b.mu.Lock()
	b.subscribers[l] = struct{}{}
	b.mu.Unlock()
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, l)
		end()
	})
}

// deliver delivers an event to the subscribers of this process.
func (b *Bus) deliver(e Event) {
	b.requests.put(e.ID, e.Request)
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subscribers {
		if e.Topic == Lagged {
			s.mark()
		} else {
			s.put(e)
		}
	}
}

// lost records that the other managers missed an event.
func (b *Bus) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.meter.lost.Inc()
	b.hole = true
}

// takeHole reports whether an event was lost since the last call.
func (b *Bus) takeHole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	hole := b.hole
	b.hole = false
	return hole
}

// subscriber is one reader. Its methods are called under the bus's lock, so only the reader changes
// the length of ch at the same time, and only reduces it.
type subscriber struct {
	topics []Topic
	ch     chan Event
	lagged bool // the last event in ch is Lagged, and may be unread
}

// put adds an event. After an unread Lagged event it adds nothing, because the reader of that event
// reads the current state anyway.
func (s *subscriber) put(e Event) {
	switch {
	case len(s.topics) > 0 && !slices.Contains(s.topics, e.Topic):
	case s.lagged && len(s.ch) > 0:
	case len(s.ch) >= subscriberBuffer:
		s.mark()
	default:
		s.lagged = false
		s.ch <- e
	}
}

// mark adds a Lagged event, for which put leaves one place in the channel.
func (s *subscriber) mark() {
	if s.lagged && len(s.ch) > 0 {
		return
	}
	s.lagged = true
	s.ch <- Event{Topic: Lagged}
}
