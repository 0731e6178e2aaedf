// Package gateway is the role that opens apps of sessions in the browser, that serves models, and that runs
// other ways into sessions, such as SSH. It connects to the stores as a manager does, and agents open
// tunnels to it, but it never leads, schedules or answers the API. Gateways have no state, so any
// number of them can run. cmd/berthd starts it.
package gateway

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/enrolment"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// Config is the configuration of one gateway.
type Config struct {
	// Stores are the stores and secrets of the cluster; the gateway closes them.
	Stores *manager.Stores
	// Cluster accepts tunnels of agents.
	Cluster net.Listener
	// ClusterAddress is the address of Cluster for agents; "": the listener's.
	ClusterAddress string
	// HTTP serves apps on hosts of their own; nil if another role of the process calls Before.
	HTTP net.Listener
	// AppsURL is the URL of apps for browsers, with * for their label: https://*.apps.example.org.
	// "": no sub-domain mode.
	AppsURL string
	// Paths serves apps below paths of one host; nil: no path mode.
	Paths net.Listener
	// PathsURL is the URL of Paths for browsers. Its host must not be that of the API or of AppsURL.
	PathsURL string
	// Ports serves apps on ports of one host, each on the listener of its port; nil: no port mode. Its host
	// must not be that of the API, of AppsURL or of PathsURL.
	Ports *app.Ports
	// PortListeners listen on the ports of Ports.
	PortListeners []net.Listener
	// ModelsURL is the base URL of the APIs of models for programs: https://models.example.org/v1. Its host must not be one of
	// apps. HTTP, or the role that calls Before, serves it. "": the gateway serves no models.
	ModelsURL string
	// Zone is the zone of the gateway, whose agents it prefers for requests to models; "": none.
	Zone string
	// ChatNetworks are hosts and networks that endpoints of chats can have in addition to the Internet.
	ChatNetworks []string
	// ChatRoots are the certificate authorities of endpoints of chats; nil: those of the machine.
	ChatRoots *x509.CertPool
	// PageURL is the URL of the page, where people log in.
	PageURL string
	// Certificate and Key are PEM files for HTTP, Paths and PortListeners; "": plain HTTP.
	Certificate, Key string
	// TrustedProxies are networks whose X-Forwarded-For and X-Forwarded-Proto are trusted.
	TrustedProxies []netip.Prefix
	// Services are other ways into sessions, such as SSH, which run beside the apps.
	Services []NewService
	// SSH is the address of the SSH server for users; nil: there is none.
	SSH *app.SSH

	Registry *prometheus.Registry // nil: no metrics
	Logger   *slog.Logger
}

// registerer returns the registry for metrics, or nil.
func (c Config) registerer() prometheus.Registerer {
	if c.Registry == nil {
		return nil
	}
	return c.Registry
}

// gatherer returns the metrics that managers can read, or nil.
func (c Config) gatherer() prometheus.Gatherer {
	if c.Registry == nil {
		return nil
	}
	return c.Registry
}

// Service is another way into sessions that a gateway serves until ctx ends.
type Service interface {
	Run(ctx context.Context) error
}

// NewService creates a service with the parts of the gateway.
type NewService func(p Parts) (Service, error)

// Parts are the services of a gateway that a service needs: Auth finds and watches credentials,
// Agents connects to the machine of a kernel, Idle records activity, and Audit records each entry.
type Parts struct {
	Client *ent.Client
	Bus    *event.Bus
	Keys   *seal.Ring
	Auth   *auth.Service
	Apps   *app.Service
	Idle   *idle.Service
	Audit  *audit.Service
	Agents app.Agents
	Logger *slog.Logger
}

// Gateway is one replica. New creates one.
type Gateway struct {
	Parts
	cfg      Config
	id       uuid.UUID
	etcd     *clientv3.Client
	hub      *cluster.Hub
	log      *slog.Logger
	services []Service
	modes    []mode
	models   models
	proxy    *httputil.ReverseProxy
	entries  entries
	starts   starts
	places   store.Limit
	visitors rate // new entries without a login
	lookups  rate // look-ups of public apps, and of the apps of ports
	owners   owners
	meter    *meter
	// visit records activity of an app of a session while data moves, until leave is called.
	visit func(ctx context.Context, session uuid.UUID, app string) (moved, leave func())
	// appAt returns the app that has a port of the gateways.
	appAt func(ctx context.Context, port int) (t app.Target, ok bool, err error)

	mu     sync.Mutex
	base   context.Context // context of Run: entries and connections to kernels end with it
	serves sync.WaitGroup
}

// New creates a gateway and its parts.
func New(cfg Config) (*Gateway, error) {
	s := cfg.Stores
	g := &Gateway{cfg: cfg, id: uuid.New(), etcd: s.Etcd, log: cfg.Logger, meter: newMeter(cfg.registerer())}
	g.entries.m, g.starts.m = map[string]*entry{}, map[string]*start{}
	bus := event.New(s.Redis, cfg.Logger)
	g.Parts = Parts{
		Client: s.Client, Bus: bus, Keys: s.Keys, Agents: reach{g}, Logger: cfg.Logger,
		Auth:  auth.New(auth.Config{Client: s.Client, Bus: bus, Redis: s.Redis, Keys: s.Keys, TrustedProxies: cfg.TrustedProxies, PublicURL: cfg.PageURL, Logger: cfg.Logger}),
		Idle:  idle.New(idle.Config{Client: s.Client, Bus: bus, Redis: s.Redis, Logger: cfg.Logger}),
		Audit: audit.New(audit.Config{Client: s.Client, Logger: cfg.Logger}),
	}
	g.visit = func(ctx context.Context, session uuid.UUID, app string) (moved, leave func()) {
		v := g.Idle.EnterApp(ctx, session, app)
		return v.Moved, v.Leave
	}
	var err error
	g.Apps, err = app.New(app.Config{
		Client: s.Client, Bus: bus, Redis: s.Redis, Keys: s.Keys, Agents: g.Agents, Logger: cfg.Logger,
		Gateways: func() []app.Gateway { return []app.Gateway{g.announcement()} },
	})
	if err != nil {
		return nil, err
	}
	g.appAt = g.Apps.At
	if g.modes, err = modesOf(cfg); err != nil {
		return nil, err
	}
	if g.models, err = g.newModels(s); err != nil {
		return nil, err
	}
	joins := enrolment.New(enrolment.Config{Client: s.Client, Bus: bus})
	g.hub = cluster.NewHub(cluster.HubConfig{
		CA: s.CA, Join: joins.Join, Admit: admitAgents(joins.Admit), Managers: g.managers,
		OnPeer: func(ctx context.Context, _ *cluster.Peer) { <-ctx.Done() }, Metrics: cfg.gatherer(), Logger: cfg.Logger,
	})
	g.proxy = g.newProxy()
	for _, make := range cfg.Services {
		d, err := make(g.Parts)
		if err != nil {
			return nil, err
		}
		g.services = append(g.services, d)
	}
	return g, nil
}

// admitAgents rejects other nodes: storage proxies call the manager's API, which a gateway does not
// serve.
func admitAgents(admit func(ctx context.Context, role, name, enrolment string) error) func(context.Context, string, string, string) error {
	return func(ctx context.Context, role, name, enrolment string) error {
		if role != cluster.RoleAgent {
			return problem.Forbidden("a gateway accepts only agents")
		}
		return admit(ctx, role, name, enrolment)
	}
}

// reach finds agents among the tunnels of a gateway.
type reach struct{ g *Gateway }

// RPC implements app.Agents.
func (r reach) RPC(agent string) (agentpb.AgentClient, error) {
	p, err := r.peer(agent)
	if err != nil {
		return nil, err
	}
	return agentpb.NewAgentClient(p.Conn), nil
}

// Streams implements app.Agents.
func (r reach) Streams(agent string) (portstream.Opener, error) {
	p, err := r.peer(agent)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (r reach) peer(agent string) (*cluster.Peer, error) {
	p, ok := r.g.hub.Peer(cluster.RoleAgent, agent)
	if !ok {
		return nil, problem.Unavailable("machine %s is not connected to this gateway", agent)
	}
	return p, nil
}

// announcement is what the gateway publishes about itself.
func (g *Gateway) announcement() app.Gateway {
	a := app.Gateway{Address: g.cfg.ClusterAddress, Apps: g.cfg.AppsURL, Paths: strings.TrimSuffix(g.cfg.PathsURL, "/"), Ports: g.cfg.Ports, SSH: g.cfg.SSH, Models: g.cfg.ModelsURL}
	if a.Address == "" {
		a.Address = g.cfg.Cluster.Addr().String()
	}
	return a
}

// managers returns the addresses of the live managers, for agents.
func (g *Gateway) managers() []string {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	found, err := discovery.List(ctx, g.etcd, leader.ManagersKey)
	if err != nil {
		g.log.Warn("list managers", "error", err)
	}
	list := []string{}
	for _, address := range found {
		list = append(list, address)
	}
	return list
}

// Before serves requests for hosts of apps and for models, and passes the others to next.
func (g *Gateway) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.ofModels(r, false) {
			g.models.handler.ServeHTTP(w, r)
			return
		}
		for _, m := range g.modes {
			if m.domain != "" && m.owns(r.Host) {
				g.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mode is how apps appear to browsers: on a host of their own below domain, below paths of host, or on
// ports of host.
type mode struct {
	domain string     // ".apps.example.org"; "": path mode or port mode
	host   string     // in path mode with the port, in port mode without
	ports  *app.Ports // nil: not port mode
	secure bool
}

func modesOf(cfg Config) (list []mode, err error) {
	if cfg.AppsURL != "" {
		u, err := url.Parse(strings.Replace(cfg.AppsURL, "*", "x", 1))
		if err != nil || u.Host == "" || !strings.HasPrefix(u.Host, "x.") || !strings.Contains(cfg.AppsURL, "*") {
			return nil, fmt.Errorf("the URL of apps %q does not have the form https://*.apps.example.org", cfg.AppsURL)
		}
		list = append(list, mode{domain: strings.ToLower(strings.TrimPrefix(u.Hostname(), "x")), secure: u.Scheme == "https"})
	}
	if cfg.PathsURL != "" {
		u, err := url.Parse(cfg.PathsURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("the URL of paths %q does not have the form https://apps.example.org", cfg.PathsURL)
		}
		list = append(list, mode{host: strings.ToLower(u.Host), secure: u.Scheme == "https"})
	}
	if cfg.Ports != nil {
		u, err := url.Parse(cfg.Ports.URL)
		if err != nil || u.Host == "" || u.Port() != "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("the URL of ports %q does not have the form https://apps.example.org, without a port", cfg.Ports.URL)
		}
		if err := cfg.Ports.Check(); err != nil {
			return nil, err
		}
		list = append(list, mode{host: strings.ToLower(u.Host), ports: cfg.Ports, secure: u.Scheme == "https"})
	}
	if len(list) == 0 && len(cfg.Services) == 0 && cfg.ModelsURL == "" {
		return nil, errors.New("a gateway needs a URL for apps, for paths, for ports or for models, or SSH")
	}
	return list, nil
}

// owns reports whether a host is below the domain of sub-domain mode.
func (m mode) owns(host string) bool {
	return strings.HasSuffix(strings.ToLower(hostname(host)), m.domain)
}

// hostname removes the port and a final dot.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(host, ".")
}

// Checks returns the readiness checks of the gateway, for /readyz.
func (g *Gateway) Checks() []opsserver.Check {
	s := g.cfg.Stores
	return []opsserver.Check{
		{Name: "postgresql", Probe: s.Audit.PingContext},
		{Name: "redis", Probe: func(ctx context.Context) error { return s.Redis.Ping(ctx).Err() }}, // it stores tickets
		{Name: "etcd", Probe: func(ctx context.Context) error {
			_, err := s.Etcd.Get(ctx, "/berth/leader")
			return err
		}},
	}
}
