package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Models knows the models and who may use them.
type Models interface {
	// Open returns the access of a key to a model. The class of the error is Unauthenticated for a key
	// that is not valid, NotFound for a model that does not exist or that the key may not use, and
	// ResourceExhausted for a budget of the key that is spent. A limit that ends with time is a *Limit.
	Open(ctx context.Context, key, model string) (*Access, error)
	// Names returns the models that a key may use.
	Names(ctx context.Context, key string) ([]string, error)
}

// Access is the access of one key to a model.
type Access struct {
	Model *Model
	// Tenant separates what is known of prompts: the caches of different tenants are not compared.
	Tenant string
	// Count gets the record of every request that has ended.
	Count func(Record)
}

// Model is a model and its replicas.
type Model struct {
	Name string
	set  set
	room *room
}

// NewModel returns a model without replicas. If wake is not nil, requests wait while there is no replica, and
// wake is called with their number whenever it changes; it must not block.
func NewModel(name string, wake func(waiting int)) *Model {
	return &Model{Name: name, set: set{prefixes: newPrefixes()}, room: newRoom(wake)}
}

// Update replaces the replicas. Requests at replicas that are no longer among them are not cut.
func (m *Model) Update(targets ...Target) {
	m.set.update(targets)
	m.room.notify()
}

// Outstanding returns the number of requests at a replica; 0 for one that is not among the targets. A replica
// is drained by an Update with a weight of 0, and can end when it has none.
func (m *Model) Outstanding(id string) int { return m.set.outstanding(id) }

// Record is what is known of a request that has ended.
type Record struct {
	Model, Replica string
	Status         int // of the answer; 499 if the client left before it
	Usage          Usage
	Counted        bool          // the engine has reported the usage
	Tries          int           // replicas that got the request
	Waited         time.Duration // until a replica could take it
	FirstByte      time.Duration // until the first byte of the answer; 0 = there was none
	Duration       time.Duration
}

// statusLeft is recorded for a client that left before the answer.
const statusLeft = 499

// Config configures a Router.
type Config struct {
	Models Models
	// FirstByte limits the time until an engine begins its answer; 0 = 10 minutes.
	FirstByte time.Duration
	// WriteTimeout limits the time for which a client takes no byte of a stream; 0 = 1 minute.
	WriteTimeout time.Duration
	// Tries is the number of replicas that can get one request; 0 = 3.
	Tries int
}

const (
	defaultFirstByte    = 10 * time.Minute
	defaultWriteTimeout = time.Minute
	defaultTries        = 3
)

// Router is an http.Handler for the addresses of apis.
type Router struct {
	cfg Config
	mux *http.ServeMux
}

// New returns a router.
func New(cfg Config) *Router {
	if cfg.FirstByte == 0 {
		cfg.FirstByte = defaultFirstByte
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = defaultWriteTimeout
	}
	if cfg.Tries == 0 {
		cfg.Tries = defaultTries
	}
	r := &Router{cfg: cfg, mux: http.NewServeMux()}
	for _, a := range apis {
		r.mux.HandleFunc("POST "+a.path, r.answer(a))
	}
	r.mux.HandleFunc("GET /v1/models", r.models)
	r.mux.HandleFunc("/", func(rw http.ResponseWriter, req *http.Request) {
		refuse(rw, http.StatusNotFound, "not_found", fmt.Sprintf("%s %s is not an address of this API", req.Method, req.URL.Path))
	})
	return r
}

// ServeHTTP serves the API.
func (r *Router) ServeHTTP(rw http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(rw, req) }

func (r *Router) models(rw http.ResponseWriter, req *http.Request) {
	names, err := r.cfg.Models.Names(req.Context(), keyOf(req))
	if err != nil {
		refuseError(rw, err)
		return
	}
	data := make([]map[string]any, len(names))
	for i, name := range names {
		data[i] = map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "berth"}
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{"object": "list", "data": data})
}

// keyOf returns the key of a request. A key in the address is not one, because addresses are logged.
func keyOf(req *http.Request) string {
	if key, is := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); is {
		return key
	}
	return req.Header.Get("X-Api-Key")
}
