package manager

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/graph"
	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/build"
	"github.com/berthhq/berth/manager/capacity"
	"github.com/berthhq/berth/manager/chat"
	"github.com/berthhq/berth/manager/chat/live"
	"github.com/berthhq/berth/manager/commit"
	"github.com/berthhq/berth/manager/core"
	"github.com/berthhq/berth/manager/deployment"
	"github.com/berthhq/berth/manager/deployment/key"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/diagnosis"
	"github.com/berthhq/berth/manager/enrolment"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/notice/announcement"
	"github.com/berthhq/berth/manager/objectstorage"
	"github.com/berthhq/berth/manager/oidc"
	"github.com/berthhq/berth/manager/overlay"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/prepull"
	"github.com/berthhq/berth/manager/preset"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/recovery"
	"github.com/berthhq/berth/manager/remotewrite"
	"github.com/berthhq/berth/manager/role"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/series"
	"github.com/berthhq/berth/manager/sessionfile"
	"github.com/berthhq/berth/manager/signup"
	"github.com/berthhq/berth/manager/sizing"
	"github.com/berthhq/berth/manager/starts"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/manager/template"
	"github.com/berthhq/berth/manager/vfolder"
	"github.com/berthhq/berth/storage/storagepb"
)

// Manager is one replica. New creates one.
type Manager struct {
	cfg     Config
	id      string
	sharers sync.WaitGroup // of the stores
	client  *ent.Client
	db      *sql.DB
	redis   redis.UniversalClient
	etcd    *clientv3.Client
	bus     *event.Bus
	ca      *cluster.CA
	keys    *seal.Ring
	hub     *cluster.Hub
	log     *slog.Logger

	tasks       *task.Service
	identity    *identity.Service
	audit       *audit.Service
	auth        *auth.Service
	policies    *policy.Service
	budgets     *budget.Service
	folders     *vfolder.Service
	objects     *objectstorage.Service
	stats       *stats.Service
	series      *series.Service
	remoteWrite *remotewrite.Service
	starts      *starts.Service
	sizes       *sizing.Service
	capacity    *capacity.Service
	providers   *oidc.Service
	signups     *signup.Service
	leader      *leader.Service
	enrolments  *enrolment.Service
	recovery    *recovery.Service
	idle        *idle.Service
	core        *core.Core
	commits     *commit.Service
	prepulls    *prepull.Service
	builds      *build.Service
	deployments *deployment.Service
	chats       *chat.Service
	notices     *notice.Service
	apps        *app.Service
	templates   *template.Service
	graph       *graph.Resolver
	knocks      knocks

	alive    atomic.Pointer[[]string]      // addresses of the live managers for nodes
	gateways atomic.Pointer[[]app.Gateway] // live gateways

	rows     *rowGauges
	requests *prometheus.HistogramVec
	attached *prometheus.GaugeVec // terminals and ports
	files    *sessionfile.Metrics
	watcher  *opsserver.Watcher
}

// New connects to the stores and wires the parts. Call Close if Run is not called.
func New(ctx context.Context, cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg, id: uuid.NewString(), log: cfg.Logger}
	if err := m.open(ctx); err != nil {
		m.Close()
		return nil, err
	}
	if err := m.wire(); err != nil {
		m.Close()
		return nil, err
	}
	if err := m.audit.Ensure(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Manager) open(ctx context.Context) (err error) {
	if m.client, m.db, err = openStore(ctx, m.cfg.PostgresDSN, m.cfg.PostgresConnections, m.meter()); err != nil {
		return err
	}
	if m.redis, err = openRedis(m.cfg.RedisURL, m.meter()); err != nil {
		return err
	}
	if m.etcd, err = m.cfg.Etcd.open(m.meter()); err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	return m.openSecrets(ctx)
}

func (m *Manager) wire() error {
	signer, err := ticket.LoadRing(m.cfg.Secrets)
	if err != nil {
		return err
	}
	m.bus = event.New(m.redis, m.log)
	m.bus.Measure(m.meter())
	m.leader = leader.New(leader.Config{Client: m.client, Etcd: m.etcd, ID: m.id, Address: m.ClusterAddress(), Version: m.cfg.Version, Registry: m.meter(), Logger: m.log})
	m.tasks = task.New(task.Config{Client: m.client, Bus: m.bus, Logger: m.log})
	m.policies = policy.New(policy.Config{Client: m.client, Bus: m.bus})
	m.budgets = budget.New(budget.Config{Client: m.client, Currency: m.cfg.Currency, Observer: budgetNews{m}, Registry: m.meter(), Logger: m.log})
	m.enrolments = enrolment.New(enrolment.Config{Client: m.client, Bus: m.bus})
	hasher := password.NewHasher(password.DefaultCost())
	if err := m.wireAuth(hasher); err != nil {
		return err
	}
	m.folders = vfolder.New(vfolder.Config{
		Client: m.client, Bus: m.bus, Signer: signer, Policies: m.policies, Tasks: m.tasks, Enrolments: m.enrolments, Users: m.auth,
		Managers: m.addresses, Logger: m.log,
	})
	m.audit = audit.New(audit.Config{
		Client: m.client, Sweepers: map[string]audit.Sweep{audit.Trash: m.folders.SweepTrash}, Logger: m.log,
	})
	if err := m.wireSessions(signer); err != nil {
		return err
	}
	reach, err := egress.Parse(m.cfg.ObjectStorages)
	if err != nil {
		return fmt.Errorf("object storages: %w", err)
	}
	m.objects = objectstorage.New(objectstorage.Config{
		Client: m.client, Keys: m.keys, Folders: m.folders, Tasks: m.tasks, Egress: reach, Logger: m.log,
	})
	m.wirePeople(hasher)
	if err := m.wireNotices(); err != nil {
		return err
	}
	m.wireHub()
	m.graph = m.resolver()
	m.measure()
	return nil
}

// wireSessions creates the services that place, run and watch sessions.
func (m *Manager) wireSessions(signer *ticket.Ring) error {
	networks, err := overlay.Parse(m.cfg.OverlayRange)
	if err != nil {
		return err
	}
	measurements := idle.NewMeasurements(m.redis, clock.Now, m.log)
	m.series, err = series.New(series.Config{Client: m.client, Loads: &load.Store{Redis: m.redis}, Registry: m.meter(), Logger: m.log})
	if err != nil {
		return err
	}
	write := m.cfg.RemoteWrite
	write.Client, write.Etcd, write.Registry, write.Logger = m.client, m.etcd, m.meter(), m.log
	if m.remoteWrite, err = remotewrite.New(write); err != nil {
		return err
	}
	m.starts = starts.New(starts.Config{Client: m.client, Registry: m.meter(), Logger: m.log})
	m.sizes, m.capacity = sizing.New(m.client, m.series, m.log), capacity.New(m.client, m.log)
	m.stats = stats.New(stats.Config{Redis: m.redis, Bus: m.bus, Observer: measurements, History: m.series, Logger: m.log})
	m.recovery = recovery.New(recovery.Config{Client: m.client, Etcd: m.etcd, CA: m.ca.Fingerprint(), Noted: m.recovering, Logger: m.log})
	m.templates = template.New(m.client, m.keys)
	m.core = core.New(core.Config{
		Templates: m.templates, Tasks: m.tasks, MaxArraySize: m.cfg.MaxArraySize, Images: m.cfg.Images,
		Client: m.client, Bus: m.bus, Keys: m.keys, Policies: m.policies, Budgets: m.budgets, Enrolments: m.enrolments, Volumes: m.folders,
		Samples: m.stats, LogRetention: m.audit, Recovery: m.recovery, Signer: signer, Networks: networks,
		ID: m.id, Fingerprint: m.ca.Fingerprint(), Managers: m.tunnelAddresses, MassLoss: m.cfg.MassLossShare,
		Registry: m.meter(), Logger: m.log,
	})
	m.commits = commit.New(commit.Config{
		Client: m.client, Images: m.core.Images, Policies: m.policies, Tasks: m.tasks, Agents: m.core.Agents,
	})
	m.prepulls = prepull.New(prepull.Config{
		Client: m.client, Tasks: m.tasks, Agents: m.core.Agents, Images: m.core.Images, Pins: m.core.Layers, Logger: m.log,
	})
	m.builds = build.New(build.Config{
		Client: m.client, Keys: m.keys, Images: m.core.Images, Commits: m.commits, Sessions: m.core.Sessions, Tasks: m.tasks,
		Agents: m.core.Agents, Users: m.auth, Logger: m.log,
	})
	m.deployments = deployment.New(deployment.Config{
		Client: m.client, Keys: m.keys, Bus: m.bus, Images: m.core.Images, Sessions: m.core.Sessions, Policies: m.policies, Agents: m.core.Agents, Users: m.auth,
		Loads: &load.Store{Redis: m.redis}, Samples: m.stats, Logger: m.log,
	})
	m.idle = idle.New(idle.Config{
		Client: m.client, Bus: m.bus, Policies: m.policies, Sessions: m.core.Sessions, Redis: m.redis, Measurements: measurements, Logger: m.log,
	})
	m.chats = chat.New(chat.Config{Client: m.client, Bus: m.bus, Keys: m.keys, Live: live.Store{Redis: m.redis}, Logger: m.log})
	m.apps, err = app.New(app.Config{Client: m.client, Bus: m.bus, Redis: m.redis, Keys: m.keys, Agents: m.core.Agents, Gateways: m.liveGateways, Logger: m.log})
	return err
}

// wireHub creates the hub of the tunnels to nodes.
func (m *Manager) wireHub() {
	views := grpc.NewServer()
	storagepb.RegisterFoldersServer(views, &vfolder.View{Folders: m.folders, Visitors: m.auth, Audit: m.fileActivity})
	m.hub = cluster.NewHub(cluster.HubConfig{
		CA: m.ca, Join: m.enrolments.Join, Admit: m.enrolments.Admit, Managers: m.addresses, OnPeer: m.peer, Logger: m.log,
		Services: map[string]*grpc.Server{cluster.RoleStorage: views}, Metrics: m.gatherer(),
	})
}

// resolver returns the resolver of the API, on all services.
func (m *Manager) resolver() *graph.Resolver {
	return &graph.Resolver{
		Client: m.client, Bus: m.bus, Agents: m.core.Agents, Occupancy: m.core.Occupancy, Audit: m.audit, Auth: m.auth, Identity: m.identity,
		Tasks: m.tasks, Images: m.core.Images, Commits: m.commits, Builds: m.builds, Deployments: m.deployments, DeploymentKeys: key.New(key.Config{Client: m.client, Bus: m.bus}), Chats: m.chats, Notices: m.notices, Announcements: &announcement.Service{Client: m.client}, Prepulls: m.prepulls, Providers: m.providers, SignUps: m.signups, Policies: m.policies, Prices: price.New(m.client), Budgets: m.budgets,
		Groups: group.New(group.Config{Client: m.client, Bus: m.bus}), Roles: role.New(role.Config{Client: m.client, Open: m.auth}),
		Sessions: m.core.Sessions, Stats: m.stats, Series: m.series, Folders: m.folders, ObjectStores: m.objects,
		Presets: preset.New(preset.Config{Client: m.client, Scheduler: m.core.Scheduler}),
		Advisor: scheduler.NewAdvisor(m.core.Scheduler, m.client, m.core.Sessions), Scheduler: m.core.Scheduler, Idle: m.idle, Apps: m.apps, Templates: m.templates,
		Leadership: m.leader, Recovery: m.recovery,
		Diagnosis: diagnosis.New(diagnosis.Config{
			Client: m.client, Redis: m.redis, Etcd: m.etcd, Leader: m.leader, Recovery: m.recovery, Agents: m.core.Agents, Gateways: m.liveGateways,
			Authority: m.ca.Expires, Version: m.cfg.Version,
		}),
		Version: m.cfg.Version, QueryTimeout: m.cfg.QueryTimeout, BatchWait: m.cfg.BatchWait, Meter: server.NewMeter(m.meter()), Logger: m.log,
	}
}

// peer serves one tunnel of a node.
func (m *Manager) peer(ctx context.Context, p *cluster.Peer) {
	switch p.Role {
	case cluster.RoleAgent:
		m.core.Agents.Connected(ctx, p)
	case cluster.RoleStorage:
		m.folders.Connected(ctx, p)
	}
}

// ClusterAddress is the address of this manager for nodes.
func (m *Manager) ClusterAddress() string {
	if m.cfg.ClusterAddress != "" {
		return m.cfg.ClusterAddress
	}
	return m.cfg.Cluster.Addr().String()
}

// addresses returns the addresses of the live managers for nodes, at least that of this one.
func (m *Manager) addresses() []string {
	list := []string{m.ClusterAddress()}
	if others := m.alive.Load(); others != nil {
		list = append(list, *others...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// watchManagers updates the list of live managers, and sends changes to connected nodes, so
// that they can reach any future leader.
func (m *Manager) watchManagers(ctx context.Context) {
	for alive := range discovery.Watch(ctx, m.etcd, leader.ManagersKey) {
		before := m.addresses()
		list := slices.Collect(maps.Values(alive))
		m.alive.Store(&list)
		if !slices.Equal(before, m.addresses()) {
			m.core.Agents.AnnounceManagers()
			m.folders.AnnounceManagers()
		}
	}
}

// Fingerprint identifies the cluster's CA to a joining node.
func (m *Manager) Fingerprint() string { return m.ca.Fingerprint() }

// NewJoinToken creates a token for a node in the same process.
func (m *Manager) NewJoinToken(ctx context.Context, role string) (string, error) {
	token, _, err := m.enrolments.NewToken(viewer.SystemContext(ctx), jointoken.Role(role))
	return token, err
}

// Bootstrap creates the first domain, project, group and superadmin if there are none, and
// returns the generated password.
func (m *Manager) Bootstrap(ctx context.Context) (password string, created bool, err error) {
	return m.identity.Bootstrap(viewer.SystemContext(ctx), m.cfg.AdminEmail)
}

// ownScanTimeout limits the wait for the images of the registry in the same process; the task that
// registers them continues.
const ownScanTimeout = 2 * time.Minute

// AddRegistry adds the registry that the same process serves, and waits until its images are
// registered.
func (m *Manager) AddRegistry(ctx context.Context, name, host, username, password string) error {
	ctx = viewer.SystemContext(ctx)
	plain := true
	in := image.CreateRegistryInput{Name: name, Host: host, PlainHTTP: &plain}
	if password != "" {
		in.Username, in.Password = &username, &password
	}
	id, err := m.client.Registry.Query().Where(registry.Name(name)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		var made *image.RegistryPayload
		if made, err = m.core.Images.CreateRegistry(ctx, in); err == nil {
			id = made.Registry.ID
		}
	} else if err == nil && password != "" {
		_, err = m.core.Images.UpdateRegistry(ctx, image.UpdateRegistryInput{ID: id, Username: &username, Password: &password})
	}
	if err != nil {
		return fmt.Errorf("register registry %s: %w", name, err)
	}
	scan, err := m.core.Images.ScanRegistry(ctx, image.ScanRegistryInput{ID: id})
	if err != nil {
		return err
	}
	if on, err := m.recovery.On(ctx); err != nil || on { // then no task runs
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ownScanTimeout)
	defer cancel()
	return m.core.Images.AwaitScan(ctx, scan.Task.ID)
}

// Reaches reports whether the agent with that name is connected.
func (m *Manager) Reaches(agent string) bool {
	_, err := m.core.Agents.RPC(agent)
	return err == nil
}

// StopSessions ends every live session.
func (m *Manager) StopSessions(ctx context.Context) error { return m.core.Sessions.StopAll(ctx) }

// Run serves until ctx ends, then closes everything.
func (m *Manager) Run(ctx context.Context) error {
	defer m.Close()
	defer m.sharers.Wait()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { m.bus.Run(ctx); return nil })
	g.Go(func() error { return m.hub.Serve(ctx, m.cfg.Cluster) })
	g.Go(func() error { return m.auth.Run(ctx) })
	g.Go(func() error { return m.serveHTTP(ctx) })
	g.Go(func() error { m.leader.Announce(ctx); return nil })
	g.Go(func() error { m.watchManagers(ctx); return nil })
	g.Go(func() error { m.watchGateways(ctx); return nil })
	g.Go(func() error { m.folders.Guard(ctx); return nil })
	g.Go(func() error { m.idle.Watch(ctx); return nil })
	g.Go(func() error { return m.series.Run(ctx) })
	g.Go(func() error { m.enrolments.Watch(ctx, m.hub.Peers); return nil })
	g.Go(func() error { m.core.Agents.Sight(ctx); return nil })
	g.Go(func() error { m.watcher.Run(ctx); return nil })
	g.Go(func() error { m.leader.Run(store.On(ctx, store.Leader), m.lead); return nil })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Close closes the connections to the stores.
func (m *Manager) Close() {
	if m.etcd != nil {
		_ = m.etcd.Close()
	}
	if m.redis != nil {
		_ = m.redis.Close()
	}
	if m.client != nil {
		_ = m.client.Close()
	}
}
