package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/manager"
)

// gatewayOptions are the flags of berthd gateway that are not fields of its configuration.
type gatewayOptions struct {
	stores                        manager.Config
	postgres, redis, etcdPassword secret
	http, paths, cluster, ops     string
	ports                         portFlags
	ssh, sshHost                  string
	trusted                       []string
	level                         string
	asJSON                        bool
}

func gatewayCommand() *cobra.Command {
	var (
		o   gatewayOptions
		cfg gateway.Config
	)
	cmd := &cobra.Command{
		Use: "gateway", Short: "Run one gateway, through which people open apps of sessions and call models", Args: cobra.NoArgs,
		Long: `Run one gateway: it opens apps of sessions, such as notebooks, in the browser,
and it serves models to programs. Gateways keep no state, so any number of them
can run behind one address. They need the stores and the secrets of the managers,
and agents must reach --cluster.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.Context(), o, cfg) },
	}
	f := cmd.Flags()
	secretFlag(cmd, &o.postgres, "postgres", "BERTHD_POSTGRES", "PostgreSQL connection string")
	f.IntVar(&o.stores.PostgresConnections, "postgres-connections", gatewayConnections, "largest number of connections to PostgreSQL for requests, in addition to 13 for other work")
	secretFlag(cmd, &o.redis, "redis", "BERTHD_REDIS", "Redis URL")
	f.StringSliceVar(&o.stores.Etcd.Endpoints, "etcd", nil, "etcd endpoints; https:// for TLS")
	f.StringVar(&o.stores.Etcd.Prefix, "etcd-prefix", "", "prefix of every key in etcd, the same as for the managers")
	f.StringVar(&o.stores.Etcd.User, "etcd-user", "", "user of etcd")
	secretFlag(cmd, &o.etcdPassword, "etcd-password", "BERTHD_ETCD_PASSWORD", "password of --etcd-user")
	pathFlag(cmd, &o.stores.Etcd.CA, "etcd-ca", "", "PEM file with the CAs of etcd's certificate (default those of the system)")
	pathFlag(cmd, &o.stores.Etcd.Cert, "etcd-cert", "", "PEM file with the client certificate for etcd")
	pathFlag(cmd, &o.stores.Etcd.Key, "etcd-key", "", "PEM file with the key of --etcd-cert")
	pathFlag(cmd, &o.stores.Secrets, "secrets", "", "directory with the cluster's CA and keys, the same as for the managers")
	f.StringVar(&o.cluster, "cluster", ":8423", "address for agents")
	f.StringVar(&cfg.ClusterAddress, "cluster-address", "", "address at which agents reach --cluster, if different")
	f.StringVar(&o.http, "http", "127.0.0.1:8422", "address of apps that have hosts of their own, and of models")
	f.StringVar(&cfg.AppsURL, "apps-url", "", "URL of apps for browsers with * for their name, such as https://*.apps.example.org")
	f.StringSliceVar(&cfg.ChatNetworks, "chat-network", nil, "internal hosts and networks that endpoints of chats can have")
	f.StringVar(&cfg.ModelsURL, "models-url", "", "base URL of the APIs of models for programs, such as https://models.example.org/v1 (default off)")
	zoneFlag(cmd, &cfg.Zone)
	f.StringVar(&o.ssh, "ssh", "", "address of SSH into sessions, such as :8425 (default off)")
	f.StringVar(&o.sshHost, "ssh-host", "", "host name of --ssh for people (default the host of --public-url)")
	f.StringVar(&o.paths, "paths", "", "address of apps below the paths of one host, where sub-domains are not possible")
	f.StringVar(&cfg.PathsURL, "paths-url", "", "URL of --paths for browsers, on a host that serves nothing else")
	f.StringVar(&o.ports.ports, "app-ports", "", "ports of apps, FIRST-LAST or HOST:FIRST-LAST, where neither sub-domains nor paths are possible")
	f.StringVar(&o.ports.url, "app-ports-url", "", "URL of --app-ports for browsers without a port, such as https://apps.example.org, on a host that serves nothing else")
	f.StringVar(&cfg.PageURL, "public-url", "", "URL of the page for browsers, such as https://berth.example.org, where people log in")
	pathFlag(cmd, &cfg.Certificate, "certificate", "", "PEM file with a certificate for the hosts of apps (default plain HTTP, behind a proxy)")
	pathFlag(cmd, &cfg.Key, "key", "", "PEM file with the key of --certificate")
	f.StringSliceVar(&o.trusted, "trusted-proxy", nil, "networks whose X-Forwarded-For is trusted")
	f.StringVar(&o.ops, "metrics", "", "address of /metrics, /healthz and /readyz for operators, or off (default "+managerOps+", another port where that is taken)")
	logFlags(cmd, &o.level, &o.asJSON, "info")
	return cmd
}

// gatewayConnections is the default number of connections to PostgreSQL: a gateway reads a few rows
// when a person opens an app, and none for each request.
const gatewayConnections = 4

func runGateway(ctx context.Context, o gatewayOptions, cfg gateway.Config) (err error) {
	for s, to := range map[*secret]*string{&o.postgres: &o.stores.PostgresDSN, &o.redis: &o.stores.RedisURL, &o.etcdPassword: &o.stores.Etcd.Password} {
		if *to, err = s.read(); err != nil {
			return err
		}
	}
	if o.stores.PostgresDSN == "" || o.stores.RedisURL == "" || len(o.stores.Etcd.Endpoints) == 0 || o.stores.Secrets == "" || cfg.PageURL == "" {
		return errors.New("--postgres, --redis, --etcd, --secrets and --public-url are required")
	}
	if (cfg.Certificate == "") != (cfg.Key == "") {
		return errors.New("--certificate and --key must be given together")
	}
	if (o.paths == "") != (cfg.PathsURL == "") {
		return errors.New("--paths and --paths-url must be given together")
	}
	if cfg.Logger, err = logger(o.level, o.asJSON); err != nil {
		return err
	}
	for _, text := range o.trusted {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--trusted-proxy %q is not a network such as 10.0.0.0/8", text)
		}
		cfg.TrustedProxies = append(cfg.TrustedProxies, p.Masked())
	}
	if cfg.AppsURL != "" || cfg.ModelsURL != "" {
		if cfg.HTTP, err = net.Listen("tcp", o.http); err != nil {
			return err
		}
	}
	if o.paths != "" {
		if cfg.Paths, err = net.Listen("tcp", o.paths); err != nil {
			return err
		}
	}
	if err := o.ports.listen(&cfg, ""); err != nil {
		return err
	}
	if cfg.Cluster, err = net.Listen("tcp", o.cluster); err != nil {
		return err
	}
	opsAt, err := listenForOperator(o.ops)
	if err != nil {
		return err
	}
	registry := opsserver.NewRegistry(version, "gateway")
	var shells net.Listener
	if o.ssh != "" {
		if shells, err = net.Listen("tcp", o.ssh); err != nil {
			return fmt.Errorf("--ssh: %w", err)
		}
	}
	cfg.Registry, o.stores.Registry, o.stores.Logger = registry, registry, cfg.Logger
	if cfg.Stores, err = manager.OpenStores(ctx, o.stores); err != nil {
		return err
	}
	if shells != nil {
		if err := serveSSH(&cfg, shells, cmp.Or(o.sshHost, hostOf(cfg.PageURL)), o.stores.Secrets, registry); err != nil {
			cfg.Stores.Close()
			return err
		}
	}
	gw, err := gateway.New(cfg)
	if err != nil {
		cfg.Stores.Close()
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return gw.Run(ctx) })
	if opsAt != nil {
		g.Go(func() error { return opsserver.New(opsAt, registry, gw.Checks(), cfg.Logger).Run(ctx) })
	}
	return g.Wait()
}

// openGateway creates the gateway of berthd up. It shares the address of the page: browsers resolve
// every name below localhost to this machine.
func (p *platform) openGateway() error {
	if p.appsDomain == "off" && p.appsPaths == "" && p.appPorts.ports == "" && p.ssh == "off" && p.models == "off" {
		return nil
	}
	tunnels, err := listenAgain(p.dir("gateway.port"))
	if err != nil {
		return err
	}
	page := p.publicURL
	if page == "" {
		page = "http://" + p.listener.Addr().String()
	}
	cfg := gateway.Config{Cluster: tunnels, PageURL: page, Registry: p.metrics.gateway, Logger: p.log.With("part", "gateway")}
	cfg.ChatNetworks = p.chatReach
	if p.models != "off" {
		cfg.ModelsURL = cmp.Or(p.models, strings.TrimSuffix(page, "/")+"/v1")
	}
	if p.appsDomain != "off" {
		u, err := url.Parse(page)
		if err != nil {
			return fmt.Errorf("--public-url: %w", err)
		}
		cfg.AppsURL = u.Scheme + "://*." + p.appsDomain
		if port := u.Port(); port != "" {
			cfg.AppsURL += ":" + port
		}
	}
	if p.appsPaths != "" {
		if cfg.Paths, err = net.Listen("tcp", p.appsPaths); err != nil {
			return fmt.Errorf("--apps-paths: %w", err)
		}
		cfg.PathsURL = "http://" + cfg.Paths.Addr().String()
	}
	if p.appPorts.ports != "" && p.appPorts.url == "" && p.publicURL == "" {
		p.appPorts.url = "http://ports.localhost" // shares no cookies with the page
	}
	if err := p.appPorts.listen(&cfg, "127.0.0.1"); err != nil {
		return err
	}
	if p.shells, err = listenAt("ssh", p.ssh, p.dir("ssh.port")); err != nil {
		return err
	}
	if p.shells != nil {
		host := ""
		if at := p.shells.Addr().(*net.TCPAddr); !at.IP.IsLoopback() {
			host = hostOf(page)
		}
		if err := serveSSH(&cfg, p.shells, host, p.dir("secrets"), p.metrics.gateway); err != nil {
			return err
		}
	}
	cfg.Stores = p.manager.Stores()
	if p.gateway, err = gateway.New(cfg); err != nil {
		cfg.Stores.Close()
	}
	return err
}

// hostOf returns the host of a URL, without its port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
