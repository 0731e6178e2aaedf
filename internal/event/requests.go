package event

import (
	"sync"

	"github.com/google/uuid"
)

// remembered is the number of entities in a generation of requests; there are two generations.
const remembered = 4096

// requests are the ids of the API requests that changed entities last, for the lines of loops that
// work on these entities later. Old ids are dropped.
type requests struct {
	mu         sync.Mutex
	young, old map[uuid.UUID]string
}

func (r *requests) put(id uuid.UUID, request string) {
	if request == "" || id == uuid.Nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.young == nil || len(r.young) >= remembered {
		r.young, r.old = map[uuid.UUID]string{}, r.young
	}
	r.young[id] = request
}

func (r *requests) get(id uuid.UUID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request, ok := r.young[id]; ok {
		return request
	}
	return r.old[id]
}

// Request returns the id of the API request that last changed an entity, or "" if this manager does
// not know it. It is only for logs, because it can be lost like any event.
func (b *Bus) Request(id uuid.UUID) string { return b.requests.get(id) }
