// Package manager is the central governor: it takes requests, keeps the truth
// in PostgreSQL, and, where it leads, schedules sessions and drives the agents
// until what is stored has come true. cmd/berthd and e2e start it.
package manager

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/graph"
)

// DefaultQueryTimeout bounds a GraphQL query where nothing else is configured.
const DefaultQueryTimeout = graph.DefaultQueryTimeout

// Config of one manager replica.
type Config struct {
	PostgresDSN string
	// PostgresConnections bounds this manager's connections to PostgreSQL for requests;
	// 0 = 14. The leader, subscriptions and the audit log have 13 more.
	PostgresConnections int
	RedisURL            string
	Etcd                Etcd

	// HTTP serves people: page, GraphQL, storage of the same origin.
	HTTP net.Listener
	// Cluster serves nodes: join and tunnels.
	Cluster net.Listener
	// ClusterAddress is how nodes reach Cluster; default its own address.
	ClusterAddress string
	// Secrets is a directory shared by all replicas: cluster CA, ticket key.
	Secrets string
	// Storage is the HTTP side of a storage proxy in the same process; nil
	// when proxies run elsewhere. It is served below /storage.
	Storage http.Handler
	// OverlayRange is divided among sessions over several agents, the same for all
	// replicas; "" = 10.214.0.0/16. It must not be in use where agents are.
	OverlayRange string
	// ObjectStorages are hosts and networks where object storages that users name may
	// be, beside the Internet.
	ObjectStorages []string
	// QueryTimeout bounds a GraphQL query; 0 = DefaultQueryTimeout.
	QueryTimeout time.Duration
	// MassLossShare is the share of a resource group's agents, above 0 and at most 1, that may
	// be out of reach at once before no session there is ended for a lost agent; 0 = 0.5.
	MassLossShare float64
	// TLS tells that people reach HTTP through TLS, so cookies are Secure.
	TLS bool
	// TrustedProxies are networks whose X-Forwarded-For is believed.
	TrustedProxies []string
	// PublicURL is where browsers reach HTTP, such as https://berth.example; "": what
	// the Host of a request says.
	PublicURL string
	// MetricsTokenFile holds a bearer token for /metrics at HTTP; "": no one reads it there.
	MetricsTokenFile string
	// AdminEmail is the first superadmin's, when the database is empty.
	AdminEmail string

	Version  string
	Logger   *slog.Logger
	Registry *prometheus.Registry
}
