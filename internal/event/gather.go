package event

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Changes are the changes since the last Take: the entities by topic, or a nil map for a topic whose
// events have no entity. Lagged reports that there are further, unknown changes.
type Changes struct {
	Changed map[Topic]map[uuid.UUID]bool
	Lagged  bool
}

// Gathering collects events for one reader that needs to know which entities have changed, but not
// how often. No event is lost, however slow the reader is.
type Gathering struct {
	topics []Topic
	except []string
	wake   chan struct{}

	mu      sync.Mutex
	changes Changes
}

// Gather collects the events of the topics until ctx ends, except those by the given loops.
func (b *Bus) Gather(ctx context.Context, topics []Topic, except ...string) *Gathering {
	g := &Gathering{topics: topics, except: except, wake: make(chan struct{}, 1)}
	b.add(ctx, g, func() {})
	return g
}

// Wake has a value when Take would return changes.
func (g *Gathering) Wake() <-chan struct{} { return g.wake }

// Take returns the changes since the last call.
func (g *Gathering) Take() Changes {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.changes
	g.changes = Changes{}
	return n
}

func (g *Gathering) put(e Event) {
	if !slices.Contains(g.topics, e.Topic) || e.By != "" && slices.Contains(g.except, e.By) {
		return
	}
	g.mu.Lock()
	if g.changes.Changed == nil {
		g.changes.Changed = map[Topic]map[uuid.UUID]bool{}
	}
	ids := g.changes.Changed[e.Topic]
	if ids == nil && e.ID != uuid.Nil {
		ids = map[uuid.UUID]bool{}
	}
	if e.ID != uuid.Nil {
		ids[e.ID] = true
	}
	g.changes.Changed[e.Topic] = ids
	g.mu.Unlock()
	g.signal()
}

func (g *Gathering) mark() {
	g.mu.Lock()
	g.changes.Lagged = true
	g.mu.Unlock()
	g.signal()
}

func (g *Gathering) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
