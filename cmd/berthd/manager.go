package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/budget"
)

func managerCommand() *cobra.Command {
	var (
		cfg           manager.Config
		postgres      secret
		redis         secret
		etcdPassword  secret
		http, cluster string
		ops           string
		level         string
		asJSON        bool
		imageKey      string
	)
	cmd := &cobra.Command{
		Use: "manager", Short: "Run one manager replica", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for s, to := range map[*secret]*string{&postgres: &cfg.PostgresDSN, &redis: &cfg.RedisURL, &etcdPassword: &cfg.Etcd.Password} {
				if *to, err = s.read(); err != nil {
					return err
				}
			}
			if cfg.PostgresDSN == "" || cfg.RedisURL == "" || len(cfg.Etcd.Endpoints) == 0 || cfg.Secrets == "" {
				return fmt.Errorf("--postgres, --redis, --etcd and --secrets are required")
			}
			if (cfg.Images.Host == "") != (imageKey == "") {
				return fmt.Errorf("--image-registry and --image-registry-key belong together")
			}
			if imageKey != "" {
				if cfg.Images.Key, err = pushtoken.ReadKey(imageKey); err != nil {
					return err
				}
			}
			if cfg.MassLossShare <= 0 || cfg.MassLossShare > 1 {
				return fmt.Errorf("--mass-loss-share %g is not above 0 and at most 1", cfg.MassLossShare)
			}
			if cfg.Logger, err = logger(level, asJSON); err != nil {
				return err
			}
			if cfg.HTTP, err = net.Listen("tcp", http); err != nil {
				return err
			}
			if cfg.Cluster, err = net.Listen("tcp", cluster); err != nil {
				return err
			}
			opsAt, err := listenForOperator(ops)
			if err != nil {
				return err
			}
			cfg.Version, cfg.Registry = version, opsserver.NewRegistry(version, "manager")
			m, err := manager.New(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			password, created, err := m.Bootstrap(cmd.Context())
			if err != nil {
				m.Close()
				return fmt.Errorf("create the first superadmin: %w", err)
			}
			first := filepath.Join(cfg.Secrets, "first-login.json")
			if err := keepFirstLogin(cmd.Context(), m, first, firstLogin{pageURL(cfg), cfg.AdminEmail, password}); err != nil {
				m.Close()
				return err
			}
			if created {
				printFirstLogin(cfg.AdminEmail, password, first)
			}
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return m.Run(ctx) })
			if opsAt != nil {
				g.Go(func() error { return opsserver.New(opsAt, m.Metrics(), m.Checks(), cfg.Logger).Run(ctx) })
			}
			return g.Wait()
		},
	}
	f := cmd.Flags()
	secretFlag(cmd, &postgres, "postgres", "BERTHD_POSTGRES", "PostgreSQL connection string")
	f.IntVar(&cfg.PostgresConnections, "postgres-connections", 0, "largest number of connections of this manager to PostgreSQL for requests, in addition to 13 for other work (default 14)")
	secretFlag(cmd, &redis, "redis", "BERTHD_REDIS", "Redis URL")
	f.StringSliceVar(&cfg.Etcd.Endpoints, "etcd", nil, "etcd endpoints; https:// for TLS")
	f.StringVar(&cfg.Etcd.Prefix, "etcd-prefix", "", "prefix of every key in etcd, for an etcd that several clusters share; the same for all replicas")
	f.StringVar(&cfg.Etcd.User, "etcd-user", "", "user of etcd")
	secretFlag(cmd, &etcdPassword, "etcd-password", "BERTHD_ETCD_PASSWORD", "password of --etcd-user")
	pathFlag(cmd, &cfg.Etcd.CA, "etcd-ca", "", "PEM file with the CAs of etcd's certificate (default those of the system)")
	pathFlag(cmd, &cfg.Etcd.Cert, "etcd-cert", "", "PEM file with the client certificate for etcd")
	pathFlag(cmd, &cfg.Etcd.Key, "etcd-key", "", "PEM file with the key of --etcd-cert")
	f.StringVar(&http, "http", "127.0.0.1:8420", "address for people and programs")
	f.StringVar(&cluster, "cluster", ":8421", "address for agents and storage proxies")
	f.StringVar(&cfg.ClusterAddress, "cluster-address", "", "address at which nodes reach --cluster, if different")
	pathFlag(cmd, &cfg.Secrets, "secrets", "", "directory with the cluster's CA and keys, the same for all replicas")
	f.IntVar(&cfg.MaxArraySize, "max-array-size", 0, "largest number of sessions in an array (default 10000)")
	f.StringVar(&cfg.Currency, "currency", budget.DefaultCurrency, "currency of prices and budgets, such as EUR, the same for all replicas; changing it converts nothing")
	f.StringVar(&cfg.Images.Host, "image-registry", "", "host:port of the registry for images that are made of sessions, the same for all replicas; it must be registered")
	pathFlag(cmd, &imageKey, "image-registry-key", "", "file with the key that signs tokens for writing to --image-registry")
	f.StringVar(&cfg.OverlayRange, "overlay-range", "", "addresses for sessions over several agents, the same for all replicas (default 10.214.0.0/16)")
	f.StringSliceVar(&cfg.ObjectStorages, "object-storage-network", nil, "internal hosts and networks that users can name as object storages")
	noticeFlags(cmd, &cfg.NoticeNetworks, &cfg.Mail)
	f.Float64Var(&cfg.MassLossShare, "mass-loss-share", 0.5, "fraction of a resource group's agents that can be unreachable at once before evictions stop there")
	f.BoolVar(&cfg.TLS, "behind-tls", false, "people reach --http through a proxy with TLS")
	f.StringSliceVar(&cfg.TrustedProxies, "trusted-proxy", nil, "networks whose X-Forwarded-For header is trusted")
	f.DurationVar(&cfg.QueryTimeout, "query-timeout", manager.DefaultQueryTimeout, "time limit of a GraphQL query")
	f.StringVar(&cfg.PublicURL, "public-url", "", "URL of the page for browsers, such as https://berth.example, for links and logins by identity providers (default: the host of the request)")
	f.StringVar(&ops, "metrics", "", "address of /metrics, /healthz and /readyz for operators, or off (default "+managerOps+", another port where that is taken)")
	monitoringFlags(cmd, &cfg)
	f.StringVar(&cfg.AdminEmail, "admin-email", "admin@berth.local", "e-mail of the first superadmin")
	logFlags(cmd, &level, &asJSON, "info")
	return cmd
}
