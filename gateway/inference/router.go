package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/modelapi"
)

// Models knows the models and who may use them.
type Models interface {
	// Open returns the access of a key to an API of a model. The class of the error is Unauthenticated for a key
	// that is not valid, PermissionDenied for an API that the key may not use, NotFound for a model that does not exist or that the key may not use, and
	// ResourceExhausted for a budget of the key that is spent. A limit that ends with time is a *Limit.
	Open(ctx context.Context, key, model string, api modelapi.API) (*Access, error)
	// Names returns the models that a key may use.
	Names(ctx context.Context, key string) ([]string, error)
}

// Access is the access of one key to a model.
type Access struct {
	Model *Model
	// Tenant separates what is known of prompts: the caches of different tenants are not compared.
	Tenant string
	// Group is the only group of replicas that gets the request, such as a revision; 0: any.
	Group int
	// Count gets the record of every request that has ended.
	Count func(Record)
	// Keep gets the record and the content of every request that has ended, after Count; nil: nothing is kept of requests.
	Keep func(Record, Content)
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

// State is what a model does now.
type State struct {
	Waiting  int // requests that wait for a replica
	Replicas []ReplicaState
}

// ReplicaState is what a replica does now.
type ReplicaState struct {
	ID          string
	Outstanding int // requests that it has
	Ejected     bool
}

// State returns what the model does now. It takes no lock for longer than a few reads.
func (m *Model) State() State {
	m.room.mu.Lock()
	s := State{Waiting: m.room.waiting}
	m.room.mu.Unlock()
	s.Replicas = m.set.states()
	return s
}

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

// oneModel is the beginning of the addresses of one model.
const oneModel = "/deployments/{name}"

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
		r.mux.HandleFunc("POST "+oneModel+a.path, r.answer(a))
	}
	for _, prefix := range []string{"", oneModel} {
		r.mux.HandleFunc("GET "+prefix+"/v1/models", r.models)
		r.mux.HandleFunc("GET "+prefix+"/v1/models/{id...}", r.model)
	}
	r.mux.HandleFunc("/", func(rw http.ResponseWriter, req *http.Request) {
		refuse(rw, http.StatusNotFound, "not_found", fmt.Sprintf("%s %s is not an address of this API", req.Method, req.URL.Path))
	})
	return r
}

// ServeHTTP serves the API.
func (r *Router) ServeHTTP(rw http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(rw, req) }

func (r *Router) models(rw http.ResponseWriter, req *http.Request) {
	names, err := r.names(req)
	if err != nil {
		refuseError(rw, err)
		return
	}
	data := make([]map[string]any, len(names))
	for i, name := range names {
		data[i] = described(name)
	}
	writeJSON(rw, map[string]any{"object": "list", "data": data})
}

func (r *Router) model(rw http.ResponseWriter, req *http.Request) {
	names, err := r.names(req)
	if err == nil && !slices.Contains(names, req.PathValue("id")) {
		err = unknown(req.PathValue("id"))
	}
	if err != nil {
		refuseError(rw, err)
		return
	}
	writeJSON(rw, described(req.PathValue("id")))
}

// names returns the models that the key of a request may use; at the address of a model, this one.
func (r *Router) names(req *http.Request) ([]string, error) {
	names, err := r.cfg.Models.Names(req.Context(), KeyOf(req))
	name := req.PathValue("name")
	switch {
	case err != nil || name == "":
		return names, err
	case !slices.Contains(names, name):
		return nil, unknown(name)
	}
	return []string{name}, nil
}

func unknown(model string) error {
	return fmt.Errorf("the model %q does not exist, or the key may not use it: %w", model, errdefs.ErrNotFound)
}

func described(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "berth"}
}

func writeJSON(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v)
}

// KeyOf returns the key of a request. A key in the address is not one, because addresses are logged.
func KeyOf(req *http.Request) string {
	if key, is := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); is {
		return key
	}
	return req.Header.Get("X-Api-Key")
}
