package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/service"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/volume"
)

// upOptions are the flags of berthd up.
type upOptions struct {
	data, listen, images, bin, email string
	publicURL, currency              string
	appsDomain, appsPaths, models    string
	appPorts                         portFlags
	sftp, ssh, ops                   string
	mock                             int
	fixtures                         []string
	pluginFile, volumeFile, caBundle string
	reach, chatReach, noticeReach    []string
	mail                             mail.Config
	floors                           floorOptions
	stopSessions                     bool
	networks                         networkLists
	level                            string
	asJSON                           bool
	monitoring                       manager.Config // of an outside Prometheus
}

func upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use: "up", Args: cobra.NoArgs,
		Short: "Run the whole platform on this machine, in one process tree",
		Long: `Run manager, agent and storage proxy with private PostgreSQL, Redis, etcd,
containerd and registry, all state below one directory. Ctrl-C stops
everything; running sessions continue and are recovered by the next start,
unless --stop-sessions is given.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(o.level, o.asJSON)
			if err != nil {
				return err
			}
			return up(cmd.Context(), o, log)
		},
	}
	exe, _ := os.Executable()
	bin := filepath.Dir(exe)
	f := cmd.Flags()
	pathFlag(cmd, &o.data, "data", "var", "directory of all state")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8420", "address of the web page and API")
	f.StringVar(&o.ssh, "ssh", "", "address of SSH into sessions, or off (default a loopback port, printed at the start and kept)")
	f.StringVar(&o.sftp, "sftp", "", "address of folders by SFTP, or off (default a loopback port, printed at the start and kept)")
	f.StringVar(&o.ops, "metrics", "", "address of /metrics, /healthz and /readyz of all roles, or off (default a loopback port, printed at the start and kept)")
	monitoringFlags(cmd, &o.monitoring)
	pathFlag(cmd, &o.images, "images", filepath.Join(bin, "../build/images"), "OCI layouts to offer as starter images")
	pathFlag(cmd, &o.bin, "bin", bin, "directory of the other programs")
	f.StringVar(&o.publicURL, "public-url", "", "URL of the page for browsers, such as https://berth.example (default: the host of the request)")
	f.StringVar(&o.appsDomain, "apps-domain", "apps.localhost", "domain whose sub-domains are the apps of sessions, or off")
	f.StringVar(&o.appsPaths, "apps-paths", "", "address of apps below the paths of one host, where --apps-domain is off")
	f.StringVar(&o.models, "models-url", "", "base URL of the APIs of models for programs, or off (default /v1 at the address of the page)")
	f.StringVar(&o.appPorts.ports, "app-ports", "", "ports of apps, such as 20000-20999, on the loopback interface unless HOST: is before them, where --apps-domain is off")
	f.StringVar(&o.appPorts.url, "app-ports-url", "", "URL of --app-ports for browsers without a port (default http://ports.localhost without --public-url)")
	f.StringVar(&o.currency, "currency", budget.DefaultCurrency, "currency of prices and budgets, such as EUR; changing it converts nothing")
	f.StringVar(&o.email, "admin-email", "admin@berth.local", "e-mail of the first superadmin")
	f.IntVar(&o.mock, "mock-accelerators", 0, "number of mock accelerators, to try fractions without hardware")
	f.StringSliceVar(&o.fixtures, "fixture", nil, "offer the accelerators of this simulated machine: a name of berthd fixture ls, or a YAML file; repeatable")
	pathFlag(cmd, &o.pluginFile, "plugin-file", "", "YAML file of accelerator plugins and their settings")
	pathFlag(cmd, &o.volumeFile, "volume-file", "", "YAML file of further volumes with their plugins and options, see docs/storage")
	f.StringSliceVar(&o.chatReach, "chat-network", nil, "internal hosts and networks that endpoints of chats can have")
	f.StringSliceVar(&o.reach, "object-storage-network", nil, "internal hosts and networks that users can name as object storages")
	noticeFlags(cmd, &o.noticeReach, &o.mail)
	o.networks.flags(cmd)
	caFlag(cmd, &o.caBundle)
	f.BoolVar(&o.stopSessions, "stop-sessions", false, "end running sessions when stopping")
	o.floors.flags(cmd)
	logFlags(cmd, &o.level, &o.asJSON, "warn")
	return cmd
}

// up runs until ctx ends. Stores start first and stop last.
func up(ctx context.Context, o upOptions, log *slog.Logger) (err error) {
	started := time.Now()
	if os.Geteuid() != 0 {
		return errors.New("must run as root, because containers, networks and mounts require it")
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := closeData(o.data); err != nil {
		return err
	}
	stores, err := service.Start(ctx, service.Config{Dir: filepath.Join(o.data, "stores"), Logger: log.With("part", "stores")})
	if err != nil {
		return fmt.Errorf("start stores: %w", err)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = errors.Join(err, stores.Stop(stop))
	}()
	machines, err := o.machines()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machines.close()) }()
	plugins, err := o.accelerators(machines)
	if err != nil {
		return err
	}
	volumes, err := o.volumes()
	if err != nil {
		return err
	}
	p := &platform{upOptions: o, log: log, listener: listener, stores: stores, metrics: newRegistries(), plugins: plugins, volumes: volumes}
	if err := p.open(ctx); err != nil {
		return err
	}
	defer p.close()
	return p.run(ctx, started)
}

// volumes returns the volume on the local disk and those of the configuration file.
func (o upOptions) volumes() ([]storage.VolumeConfig, error) {
	dir := filepath.Join(o.bin, "plugins/volume")
	list := []storage.VolumeConfig{{
		Name: "local", Backend: filepath.Join(dir, "vfs"), MountPath: filepath.Join(o.data, "volumes/local"), Create: true,
	}}
	if o.volumeFile == "" {
		return list, nil
	}
	more, err := volume.Read(o.volumeFile, dir)
	if err != nil {
		return nil, fmt.Errorf("--volume-file: %w", err)
	}
	return append(list, more...), nil
}

// platform is all roles in one process.
type platform struct {
	upOptions
	log      *slog.Logger
	listener net.Listener
	stores   *service.Stores
	metrics  registries

	manager    *manager.Manager
	gateway    *gateway.Gateway // nil if disabled
	shells     net.Listener     // of SSH, nil if disabled
	storage    *storage.Proxy
	agent      *agent.Agent
	plugins    []agent.PluginConfig
	volumes    []storage.VolumeConfig
	containerd *daemon.Daemon
	registry   *registry.Registry
	readers    string // password of the registry
	own        image.Own
	images     net.Listener
	files      net.Listener // SFTP; nil if disabled
	ops        net.Listener // metrics; nil if disabled
	host       string       // name of the agent
	password   string       // of the first superadmin, if this start created it
}

func (p *platform) dir(parts ...string) string {
	return filepath.Join(append([]string{p.data}, parts...)...)
}

// open creates the roles. The manager comes first: the others need its address and a join
// token.
func (p *platform) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(p.dir("secrets"), 0o700); err != nil {
		return err
	}
	nodes, err := listenAgain(p.dir("cluster.port"))
	if err != nil {
		return err
	}
	if p.ops, err = listenAt("metrics", p.upOptions.ops, p.dir("metrics.port")); err != nil {
		return err
	}
	if err := p.openRegistry(); err != nil {
		return err
	}
	door := &lateHandler{}
	p.manager, err = manager.New(ctx, manager.Config{
		PostgresDSN: p.stores.Postgres.DSN("berth"), RedisURL: p.stores.Redis.URL(),
		Etcd: manager.Etcd{Endpoints: []string{p.stores.Etcd.Endpoint()}},
		HTTP: p.listener, Cluster: nodes, Secrets: p.dir("secrets"), Storage: door, ObjectStorages: p.reach,
		AdminEmail: p.email, PublicURL: p.publicURL, Currency: p.currency, Version: version, Logger: p.log.With("part", "manager"), Registry: p.metrics.manager,
		Before: p.beforePage, Images: p.own, MetricsTokenFile: p.monitoring.MetricsTokenFile, RemoteWrite: p.monitoring.RemoteWrite,
		NoticeNetworks: p.noticeReach, Mail: p.mail,
	})
	if err != nil {
		return fmt.Errorf("start manager: %w", err)
	}
	if p.password, _, err = p.manager.Bootstrap(ctx); err != nil {
		return fmt.Errorf("create the first superadmin: %w", err)
	}
	if err := p.openGateway(); err != nil {
		return fmt.Errorf("start gateway: %w", err)
	}
	if p.storage, err = p.openStorage(ctx, nodes.Addr().String()); err != nil {
		return fmt.Errorf("start storage proxy: %w", err)
	}
	door.Handler = p.storage.Handler()
	if p.agent, err = p.openAgent(ctx, nodes.Addr().String()); err != nil {
		return fmt.Errorf("start agent: %w", err)
	}
	return nil
}

// openRegistry opens the registry of the starter images and of images that are made of sessions. The
// manager needs its address.
func (p *platform) openRegistry() (err error) {
	if p.registry, err = registry.Open(p.dir("registry", "blobs")); err != nil {
		return fmt.Errorf("start registry: %w", err)
	}
	if p.readers, err = registry.ReaderPassword(p.dir("registry")); err != nil {
		return err
	}
	key, err := pushtoken.KeyIn(p.dir("registry"))
	if err != nil {
		return err
	}
	p.registry.Log(p.log.With("part", "registry"))
	p.registry.Require(p.readers)
	p.registry.AllowPush(key)
	if p.images, err = registry.Listen(p.dir("registry")); err != nil {
		return err
	}
	p.own = image.Own{Host: p.images.Addr().String(), Key: key}
	return nil
}

// beforePage routes the hosts of apps and the paths of models, which share the address of the page, to the gateway.
func (p *platform) beforePage(next http.Handler) http.Handler {
	if p.gateway == nil {
		return next
	}
	return p.gateway.Before(next)
}

func (p *platform) openStorage(ctx context.Context, managers string) (*storage.Proxy, error) {
	token, err := p.manager.NewJoinToken(ctx, cluster.RoleStorage)
	if err != nil {
		return nil, err
	}
	if p.files, err = listenAt("sftp", p.sftp, p.dir("sftp.port")); err != nil {
		return nil, err
	}
	return storage.New(storage.Config{
		Name: "local", Dir: p.dir("storage"), PublicURL: "/storage", SFTP: p.files, ObjectStorages: p.reach, Volumes: p.volumes,
		Managers: []string{managers}, JoinToken: token, CAFingerprint: p.manager.Fingerprint(),
		Version: version, Logger: p.log.With("part", "storage"), Registry: p.metrics.storage,
	})
}

func (p *platform) openAgent(ctx context.Context, managers string) (*agent.Agent, error) {
	token, err := p.manager.NewJoinToken(ctx, cluster.RoleAgent)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	volumes := map[string]string{}
	for _, v := range p.volumes {
		volumes[v.Name] = v.MountPath
	}
	cfg := daemon.Config{Dir: p.dir("containerd")}
	p.containerd, err = daemon.Start(ctx, cfg, []string{exe, "containerd", "--dir", cfg.Dir}, p.log.With("part", "containerd"))
	if err != nil {
		return nil, err
	}
	floors, err := p.floors.limits()
	if err != nil {
		return nil, err
	}
	if p.host, err = os.Hostname(); err != nil {
		p.host = "local"
	}
	node := agent.Config{
		Name: p.host, Dir: p.dir("agent"), Version: version, Managers: []string{managers},
		JoinToken: token, CAFingerprint: p.manager.Fingerprint(),
		Volumes: volumes, Plugins: p.plugins, Conditions: floors,
		ContainerdSocket: cfg.Address(), ShimPath: filepath.Join(p.bin, "containerd-shim-runc-v2"),
		RuncPath: filepath.Join(p.bin, "runc"), RunnerPath: filepath.Join(p.bin, "berth-runner"), BuilderPath: filepath.Join(p.bin, "berth-builder"), CABundle: p.caBundle,
		LazyCommand: []string{exe, "lazy"},
		Images: agent.ImageConfig{ // no other agent can join a platform whose managers listen on the loopback interface
			Listen:  agent.ImagesOff,
			Cleanup: agent.ImageCleanup{Above: agent.DefaultCleanupAbove, Below: agent.DefaultCleanupBelow, Grace: agent.DefaultCleanupGrace},
		},
		KeepSessions: !p.stopSessions, Registry: p.metrics.agent, Logger: p.log.With("part", "agent"),
	}
	if err := p.networks.set(&node); err != nil {
		return nil, err
	}
	return agent.New(node)
}

// run serves until ctx ends. Then it ends sessions if requested, and all roles stop.
func (p *platform) run(ctx context.Context, started time.Time) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	g, inner := errgroup.WithContext(inner)
	g.Go(func() error { return p.manager.Run(inner) })
	if p.gateway != nil {
		g.Go(func() error { return p.gateway.Run(inner) })
	}
	g.Go(func() error { return p.storage.Run(inner) })
	g.Go(func() error { return p.agent.Run(inner) })
	g.Go(func() error { return p.registry.Serve(inner, p.images) })
	if p.ops != nil {
		g.Go(func() error {
			return opsserver.New(p.ops, p.metrics.all(p.manager.Metrics()), p.checks(), p.log).Run(inner)
		})
	}
	g.Go(func() error {
		if err := p.greet(inner, started); err != nil {
			return err
		}
		debug.FreeOSMemory() // startup needs twice the memory of an idle platform
		select {
		case <-inner.Done():
		case <-ctx.Done():
			p.farewell(inner)
		}
		cancel()
		return nil
	})
	return g.Wait()
}

// greet registers the starter images and prints how to continue.
func (p *platform) greet(ctx context.Context, started time.Time) error {
	if _, err := p.registry.ImportAll(ctx, p.upOptions.images); err != nil {
		return fmt.Errorf("import starter images from %s: %w", p.upOptions.images, err)
	}
	if err := p.usable(ctx); err != nil {
		return err
	}
	url := "http://" + p.listener.Addr().String()
	fmt.Printf("\n  Berth is at %s  (ready after %.1f s)\n", url, time.Since(started).Seconds())
	first := p.dir("first-login.json")
	if err := keepFirstLogin(ctx, p.manager, first, firstLogin{url, p.email, p.password}); err != nil {
		return err
	}
	if p.password != "" {
		printFirstLogin(p.email, p.password, first)
	}
	if err := p.manager.AddRegistry(ctx, "local", p.images.Addr().String(), registry.ReaderName, p.readers); err != nil {
		p.log.Warn("scan the local registry", "error", err)
	}
	if p.files != nil {
		at := p.files.Addr().(*net.TCPAddr)
		fmt.Printf("\n  Folders by SFTP: sftp -P %d %s@%s, the password is an access token\n  Its host key:    %s\n", at.Port, p.email, at.IP, p.storage.HostKey())
	}
	if p.shells != nil {
		at := p.shells.Addr().(*net.TCPAddr)
		fmt.Printf("\n  Sessions by SSH: ssh -p %d SESSION@%s, with an SSH key of the account, or an access token as the password\n", at.Port, at.IP)
	}
	if p.ops != nil {
		fmt.Printf("\n  Metrics and health: http://%s/metrics, /readyz\n", p.ops.Addr())
	}
	fmt.Printf("\n  Next: bin/berth login %s && bin/berth run minimal:1 -- echo hello\n  Or:   make demo\n\n", url)
	return nil
}

// farewell ends the sessions if requested, before the roles stop.
func (p *platform) farewell(ctx context.Context) {
	fmt.Println("\n  Stopping …")
	if !p.stopSessions {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.manager.StopSessions(ctx); err != nil {
		p.log.Warn("end sessions", "error", err)
	}
}

func (p *platform) close() {
	if p.registry != nil {
		_ = p.registry.Close()
	}
	if p.containerd != nil {
		stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.containerd.Stop(stop); err != nil {
			p.log.Warn("stop containerd", "error", err)
		}
	}
}
