// Package manager is the control plane: it handles requests, stores the desired and the
// observed state in PostgreSQL and, if it leads, schedules sessions and drives the agents
// towards the desired state. cmd/berthd and e2e start it.
package manager

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/manager/remotewrite"
)

// DefaultQueryTimeout limits a GraphQL query if no other value is configured.
const DefaultQueryTimeout = server.DefaultQueryTimeout

// Config is the configuration of one manager replica.
type Config struct {
	PostgresDSN string
	// PostgresConnections limits this manager's connections to PostgreSQL for requests; 0 =
	// 14. The leader, subscriptions and the audit log use 13 more.
	PostgresConnections int
	RedisURL            string
	Etcd                Etcd

	// HTTP serves users: the page, GraphQL, and storage on the same origin.
	HTTP net.Listener
	// Cluster serves nodes: join and tunnels.
	Cluster net.Listener
	// ClusterAddress is the address of Cluster for nodes; default: the listener's address.
	ClusterAddress string
	// Secrets is a directory with the cluster CA and the ticket key, shared by all replicas.
	Secrets string
	// Storage is the HTTP side of a storage proxy in the same process, served below /storage;
	// nil if proxies run elsewhere.
	Storage http.Handler
	// Before, if set, sees every request for HTTP first. A gateway in the same process serves the
	// hosts of apps with it.
	Before func(next http.Handler) http.Handler
	// OverlayRange is the address range of the networks of sessions on several agents, the
	// same for all replicas; "" = 10.214.0.0/16. It must not be in use on the agents.
	OverlayRange string
	// ObjectStorages are hosts and networks that users may name as object storages in addition
	// to public Internet addresses.
	ObjectStorages []string
	// NoticeNetworks are hosts and networks that channels of notices can reach in addition to public
	// Internet addresses.
	NoticeNetworks []string
	// Mail is the server that notices are mailed with; without a host, there is no mail.
	Mail mail.Config
	// QueryTimeout limits a GraphQL query; 0 = DefaultQueryTimeout.
	QueryTimeout time.Duration
	// BatchWait is the time for which a GraphQL query collects the keys that it reads with one
	// SQL statement; 0 = 1 ms.
	BatchWait time.Duration
	// MaxArraySize limits the members of an array of sessions; 0 = 10,000.
	MaxArraySize int
	// Images is the registry for images that are made of sessions, the same for all replicas; zero:
	// sessions cannot be saved as images.
	Images image.Own
	// Currency is the name of the currency of prices and budgets, the same for all replicas; "" =
	// credits.
	Currency string
	// MassLossShare is the fraction of a resource group's agents, above 0 and at most 1, that
	// can be unreachable before evictions in the group stop; 0 = 0.5.
	MassLossShare float64
	// TLS says that a TLS terminator is in front of HTTP, so cookies are Secure.
	TLS bool
	// TrustedProxies are networks whose X-Forwarded-For header is trusted.
	TrustedProxies []string
	// PublicURL is the URL of HTTP for browsers, such as https://berth.example; "": derived
	// from the Host of a request.
	PublicURL string
	// MetricsTokenFile contains a bearer token for /metrics on HTTP; "": not served there.
	MetricsTokenFile string
	// RemoteWrite names the Prometheus that gets the measurements; zero: none.
	RemoteWrite remotewrite.Config
	// AdminEmail is the e-mail address of the first superadmin of an empty database.
	AdminEmail string

	Version  string
	Logger   *slog.Logger
	Registry *prometheus.Registry
}
