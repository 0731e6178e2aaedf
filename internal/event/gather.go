package event

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// News is what has changed since it was taken: by topic the entities, or a nil
// map where the topic's events name none. Lagged says that there is more, of
// which nothing is known.
type News struct {
	Changed map[Topic]map[uuid.UUID]bool
	Lagged  bool
}

// Gathering collects events for one reader who is only interested in what has
// changed, not in how often. However slow they are, no event is lost here.
type Gathering struct {
	topics []Topic
	except []string
	wake   chan struct{}

	mu   sync.Mutex
	news News
}

// Gather collects the events of the topics until ctx ends, but those by the loops
// that are excepted.
func (b *Bus) Gather(ctx context.Context, topics []Topic, except ...string) *Gathering {
	g := &Gathering{topics: topics, except: except, wake: make(chan struct{}, 1)}
	b.add(ctx, g, func() {})
	return g
}

// Wake has a value when there is news to take.
func (g *Gathering) Wake() <-chan struct{} { return g.wake }

// Take returns the news since the last call.
func (g *Gathering) Take() News {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.news
	g.news = News{}
	return n
}

func (g *Gathering) put(e Event) {
	if !slices.Contains(g.topics, e.Topic) || e.By != "" && slices.Contains(g.except, e.By) {
		return
	}
	g.mu.Lock()
	if g.news.Changed == nil {
		g.news.Changed = map[Topic]map[uuid.UUID]bool{}
	}
	ids := g.news.Changed[e.Topic]
	if ids == nil && e.ID != uuid.Nil {
		ids = map[uuid.UUID]bool{}
	}
	if e.ID != uuid.Nil {
		ids[e.ID] = true
	}
	g.news.Changed[e.Topic] = ids
	g.mu.Unlock()
	g.signal()
}

func (g *Gathering) mark() {
	g.mu.Lock()
	g.news.Lagged = true
	g.mu.Unlock()
	g.signal()
}

func (g *Gathering) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}
