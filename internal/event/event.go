// Package event tells the managers that something changed: at once in the same
// process, through Redis in the others. An event is a hint to look again, never
// the truth: any may be lost. Manager services publish, loops and GraphQL
// subscriptions listen.
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

// Topic is what an event is about.
type Topic string

// The topics. The ID of an event is that of the entity.
const (
	Session Topic = "session"
	Agent   Topic = "agent"
	Vfolder Topic = "vfolder"
	Share   Topic = "share"   // of a folder
	Login   Topic = "login"   // a credential was revoked
	Task    Topic = "task"    // a durable task waits, moved on or ended
	Pending Topic = "pending" // what all sessions are scheduled by has changed; without ID
	Policy  Topic = "policy"  // what a resource policy limits has changed; without ID
	Revoked Topic = "revoked" // certificates of machines were revoked; without ID
	// Occupancy asks the leader to compare what runs with what should; without ID.
	Occupancy Topic = "occupancy"
	// Lagged marks a hole: events of any topic were lost here, so a subscriber
	// reads again what it shows. Every subscriber gets it, whatever it asked for.
	Lagged Topic = "lagged"
)

// Marks of events that loops may pass over.
const (
	// BySamples marks events that only bring new samples of what an entity uses.
	BySamples = "samples"
	// ByReasons marks events of sessions that only bring why they wait.
	ByReasons = "reasons"
)

// Event says that an entity changed.
type Event struct {
	Topic   Topic     `json:"t"`
	ID      uuid.UUID `json:"i,omitzero"`
	Data    []byte    `json:"d,omitempty"`
	By      string    `json:"b,omitempty"` // the loop that caused it, which may pass it over
	Request string    `json:"r,omitempty"` // id of the API request that caused it
}

const (
	// subscriberBuffer is how far a subscriber may fall behind.
	subscriberBuffer = 256
	// outboxSize is how many events may wait for Redis.
	outboxSize = 4096
)

// Bus spreads events. Make it with New.
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

// Publish gives the event to the subscribers of this process and leaves it for
// Run to send to the others. It never waits.
func (b *Bus) Publish(ctx context.Context, e Event) {
	e.Request = requestid.From(ctx)
	b.deliver(e)
	select {
	case b.outbox <- e:
	default:
		b.lost()
	}
}

// Subscribe returns the events of the topics, of all when none is named. The
// channel is closed after ctx ends. A subscriber that falls behind finds one
// Lagged event in place of those it missed.
func (b *Bus) Subscribe(ctx context.Context, topics ...Topic) <-chan Event {
	s := &subscriber{topics: topics, ch: make(chan Event, subscriberBuffer+1)}
	b.add(ctx, s, func() { close(s.ch) })
	return s.ch
}

// listener is what events are given to, under the bus's lock.
type listener interface {
	put(e Event)
	mark() // that events were lost
}

// add lets l hear until ctx ends, and then calls end.
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

// deliver gives an event to the subscribers of this process.
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

// lost remembers that the other managers missed an event.
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

// subscriber is one reader. Its methods are called under the bus's lock, so
// that only the reader changes the length of ch meanwhile, by making it less.
type subscriber struct {
	topics []Topic
	ch     chan Event
	lagged bool // the last event in ch is a Lagged that may not be read yet
}

// put adds an event. Behind an unread Lagged nothing is added: anyone who reads
// that looks at the present anyway.
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

// mark adds a Lagged; the channel has one place more than put fills.
func (s *subscriber) mark() {
	if s.lagged && len(s.ch) > 0 {
		return
	}
	s.lagged = true
	s.ch <- Event{Topic: Lagged}
}
