package event

import (
	"sync"

	"github.com/google/uuid"
)

// remembered is how many entities a generation of requests has; there are two.
const remembered = 4096

// requests are the ids of the API requests that changed entities last, for the lines of
// loops that work on these entities later. What is old or was never heard is unknown.
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

// Request returns the id of the API request that changed an entity last, as far as this
// manager heard, else "". It is for logs alone: it may be lost like any event.
func (b *Bus) Request(id uuid.UUID) string { return b.requests.get(id) }
