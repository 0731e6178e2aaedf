package manager

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/app"
)

// Stores are the connections to the stores and the secrets of a cluster. A gateway uses them as a
// manager does.
type Stores struct {
	Client *ent.Client
	Audit  *sql.DB // of the audit log
	Redis  redis.UniversalClient
	Etcd   *clientv3.Client
	CA     *cluster.CA
	Keys   *seal.Ring

	close func()
}

// OpenStores connects to the stores that a configuration names, and reads the secrets.
func OpenStores(ctx context.Context, cfg Config) (*Stores, error) {
	m := &Manager{cfg: cfg, log: cfg.Logger}
	if err := m.open(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m.storesUntil(m.Close), nil
}

// Stores are the stores of the manager, for a gateway in the same process. Run of the manager returns only
// after they are closed, and closes the connections then.
func (m *Manager) Stores() *Stores {
	m.sharers.Add(1)
	return m.storesUntil(sync.OnceFunc(m.sharers.Done))
}

func (m *Manager) storesUntil(closed func()) *Stores {
	return &Stores{Client: m.client, Audit: m.db, Redis: m.redis, Etcd: m.etcd, CA: m.ca, Keys: m.keys, close: closed}
}

// Close closes the connections, unless a manager shares them.
func (s *Stores) Close() { s.close() }

// watchGateways updates the list of live gateways, and sends changes to the agents, which open tunnels
// to them.
func (m *Manager) watchGateways(ctx context.Context) {
	for alive := range discovery.Watch(ctx, m.etcd, app.GatewaysKey) {
		list := []app.Gateway{}
		for id, said := range alive {
			var g app.Gateway
			if err := json.Unmarshal([]byte(said), &g); err != nil {
				m.log.Warn("read the entry of a gateway", "gateway", id, "error", err)
				continue
			}
			list = append(list, g)
		}
		slices.SortFunc(list, func(a, b app.Gateway) int { return strings.Compare(a.Address, b.Address) })
		if before := m.gateways.Swap(&list); before == nil || !reflect.DeepEqual(*before, list) {
			m.core.Agents.AnnounceManagers()
		}
	}
}

func (m *Manager) liveGateways() []app.Gateway {
	if list := m.gateways.Load(); list != nil {
		return *list
	}
	return nil
}

// tunnelAddresses are the addresses to which agents open tunnels: those of the managers and of the gateways.
func (m *Manager) tunnelAddresses() []string {
	list := m.addresses()
	for _, g := range m.liveGateways() {
		list = append(list, g.Address)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// notFromApps rejects requests from the page of an app. If apps and the page share a domain,
// browsers treat them as one site.
func (m *Manager) notFromApps(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && m.apps.IsAppOrigin(origin) {
			problem.WriteHTTP(w, r, problem.Forbidden("pages of apps may not call the API"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
