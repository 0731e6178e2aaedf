// Package targets shows the metrics of every role to a monitoring system that reaches only the managers: a list of targets for
// Prometheus, and the metrics of each target, which a manager reads over the cluster's own connections (ADR 55).
package targets

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// Path is the path below which the routes are.
const Path = "/metrics/"

// The roles of targets.
const (
	Manager = "manager"
	Agent   = cluster.RoleAgent
	Storage = cluster.RoleStorage
	Gateway = "gateway"
)

const (
	// readTime limits one read of the metrics of a target. Prometheus waits 10 s.
	readTime = 8 * time.Second
	// maxReads limits the concurrent reads of one manager, so that a cluster of agents that do not answer
	// occupies a bounded number of connections.
	maxReads = 256
)

// Config has what a Service reads.
type Config struct {
	Client *ent.Client
	// Peer returns the tunnel of an agent or a storage proxy to this manager.
	Peer func(role, name string) (*cluster.Peer, bool)
	// Managers and Gateways return the cluster addresses of the live ones.
	Managers, Gateways func() []string
	// Read returns the metrics of the manager or gateway at a cluster address, compressed with gzip.
	Read func(ctx context.Context, address string) ([]byte, error)
	// Own is the address of this manager, and OwnMetrics answers with its metrics.
	Own        string
	OwnMetrics http.Handler
	// Allow passes requests of the monitoring to next, and refuses others.
	Allow  func(next http.Handler) http.Handler
	Logger *slog.Logger
}

// Service answers the requests of a monitoring system. New creates one.
type Service struct {
	Config
	reads chan struct{}
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{Config: cfg, reads: make(chan struct{}, maxReads)} }

// Register adds the routes.
func (s *Service) Register(mux *http.ServeMux) {
	mux.Handle("GET "+Path+"targets", s.Allow(http.HandlerFunc(s.discover)))
	mux.Handle("GET "+Path+"{role}/{name}", s.Allow(http.HandlerFunc(s.read)))
}

// Target is one process whose metrics can be read.
type Target struct {
	Role, Name string
	Group      string // of an agent
}

// entry is a target in the form of Prometheus' HTTP service discovery.
type entry struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discover lists the targets. Their address is the one at which the monitoring has reached this manager.
func (s *Service) discover(w http.ResponseWriter, r *http.Request) {
	list, err := s.List(r.Context())
	if err != nil {
		s.fail(w, r, "list the targets of the monitoring", err)
		return
	}
	out := make([]entry, len(list))
	for i, t := range list {
		out[i] = entry{[]string{r.Host}, map[string]string{
			"__metrics_path__": Path + t.Role + "/" + url.PathEscape(t.Name),
			"instance":         t.Name, "role": t.Role, "name": t.Name, "group": t.Group,
		}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(out)
}

// List returns the targets, ordered by role and name: managers and gateways that are alive, and all agents and storage
// proxies of the cluster, also those that are lost.
func (s *Service) List(ctx context.Context) ([]Target, error) {
	ctx = store.StatementTimeout(viewer.SystemContext(ctx), readTime)
	list := []Target{}
	for _, address := range s.Managers() {
		list = append(list, Target{Role: Manager, Name: address})
	}
	for _, address := range s.Gateways() {
		list = append(list, Target{Role: Gateway, Name: address})
	}
	agents, err := s.Client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated)).Select(agent.FieldName, agent.FieldResourceGroupID).WithResourceGroup().All(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		list = append(list, Target{Role: Agent, Name: a.Name, Group: a.Edges.ResourceGroup.Name})
	}
	proxies, err := s.Client.StorageProxy.Query().All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range proxies {
		list = append(list, Target{Role: Storage, Name: p.Name})
	}
	slices.SortFunc(list, func(a, b Target) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(list), nil
}
