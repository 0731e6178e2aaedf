// Package storage is the storage proxy: it keeps folders on volumes, serves the control calls
// of managers over gRPC, and serves uploads, downloads and views of folders to users.
// cmd/berthd runs it.
package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/object"
	"github.com/berthhq/berth/storage/sshd"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/view"
	"github.com/berthhq/berth/storage/volume"
)

// VolumeConfig describes one volume.
type VolumeConfig = volume.Config

// Config of a storage proxy.
type Config struct {
	Name    string
	Dir     string // state: the file system of each volume, the node's certificate
	Volumes []VolumeConfig
	// PublicURL is the base URL of the HTTP side for users; "" or a path means the manager's
	// origin.
	PublicURL string
	// SFTP listens for SFTP connections; nil disables SFTP. The proxy closes it.
	SFTP net.Listener
	// Origins are the origins whose pages may use the HTTP side; empty means the same origin
	// only.
	Origins []string
	// Managers, JoinToken and CAFingerprint are needed to join the cluster. Without Managers,
	// the proxy connects to nothing and the caller serves GRPC itself.
	Managers []string
	// Manager looks up the folders that a credential gives access to, and records file
	// activity; nil means the managers of the cluster.
	Manager       view.Manager
	JoinToken     string
	CAFingerprint string
	// ObjectStorages are hosts and networks that users may name as object storages in addition
	// to public Internet addresses.
	ObjectStorages []string
	Version        string
	Logger         *slog.Logger
	Registry       *prometheus.Registry // nil: no metrics
}

// registerer returns the registry for metrics, or nil.
func (c Config) registerer() prometheus.Registerer {
	if c.Registry == nil {
		return nil
	}
	return c.Registry
}

// Proxy is a storage proxy. New creates one.
type Proxy struct {
	cfg     Config
	log     *slog.Logger
	set     *volume.Set
	keys    *keyring
	http    *transfer.Server
	grpc    *grpc.Server
	service *service
	views   *view.Views
	sftp    *sshd.Server  // nil without SFTP
	node    *cluster.Node // nil outside a cluster
	watcher *opsserver.Watcher
}

// New checks the configuration and the kernel, and wires the parts of the proxy.
func New(cfg Config) (*Proxy, error) {
	if cfg.Name == "" || cfg.Dir == "" {
		return nil, errors.New("storage: name and state directory are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := probe(); err != nil {
		return nil, err
	}
	log := cfg.Logger.With("storage", cfg.Name)
	reach, err := egress.Parse(cfg.ObjectStorages)
	if err != nil {
		return nil, fmt.Errorf("storage: object storages: %w", err)
	}
	set, err := volume.NewSet(cfg.Dir, cfg.Volumes, log)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	verifier := new(ticket.Verifier)
	data, err := transfer.New(transfer.Config{
		Volumes: set, Tickets: verifier, Origins: cfg.Origins, Logger: log, Registerer: cfg.registerer(),
	})
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if cfg.Registry != nil {
		if err := cfg.Registry.Register(set); err != nil {
			return nil, fmt.Errorf("storage: %w", err)
		}
	}
	p := &Proxy{cfg: cfg, log: log, set: set, keys: &keyring{verifier: verifier}, http: data}
	if p.node, err = newNode(cfg); err != nil {
		return nil, err
	}
	if p.views, err = newViews(cfg, set, data, p.node); err != nil {
		return nil, err
	}
	data.Mount(view.Path, "dav", p.views.WebDAV)
	if p.sftp, err = newSFTP(cfg, p.views, log); err != nil {
		return nil, err
	}
	if cfg.Registry != nil && p.node != nil {
		p.node.Measure(cfg.Registry)
	}
	p.watcher = opsserver.NewWatcher(cluster.RoleStorage, p.Checks(), cfg.registerer(), log)
	p.service = newService(p)
	if p.node != nil {
		p.service.learn = p.node.Learn
	}
	p.grpc = grpc.NewServer(grpc.ChainUnaryInterceptor(p.unary), grpc.ChainStreamInterceptor(p.stream))
	storagepb.RegisterStorageServer(p.grpc, p.service)
	storagepb.RegisterObjectsServer(p.grpc, &objects{service: p.service, mover: object.New(data, reach)})
	if cfg.Registry != nil {
		cluster.ServeMetrics(p.grpc, cfg.Registry)
	}
	return p, nil
}

// probe returns an error on a kernel or in a sandbox without openat2 (Linux 5.6), which keeps
// paths inside their folder.
func probe() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return fmt.Errorf("storage: the kernel has no openat2: %w", err)
	}
	return unix.Close(fd)
}

// Handler returns the HTTP side. It can be mounted below a prefix with http.StripPrefix.
func (p *Proxy) Handler() http.Handler { return p.http }

// GRPC returns the control side, for a caller that serves it on a listener of its own.
func (p *Proxy) GRPC() *grpc.Server { return p.grpc }

// HostKey returns the fingerprint of the SFTP server's key, or "" without SFTP.
func (p *Proxy) HostKey() string {
	if p.sftp == nil {
		return ""
	}
	return p.sftp.Fingerprint()
}

// Volumes returns the state of every volume.
func (p *Proxy) Volumes() []volume.State {
	var out []volume.State
	for _, v := range p.set.All() {
		out = append(out, v.State())
	}
	return out
}

// Run serves until the context ends or the cluster rejects the node. When it returns, no
// plugin process and no mount of the proxy is left.
func (p *Proxy) Run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	recording, recorded := context.WithCancel(context.WithoutCancel(parent))
	defer recorded()
	reaching, leave := context.WithCancel(context.WithoutCancel(parent))
	defer leave()
	var wg, visits, tellers sync.WaitGroup
	run := func(wg *sync.WaitGroup, own context.Context, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(own); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	run(&wg, ctx, p.set.Run)
	run(&wg, ctx, p.http.Run)
	run(&wg, ctx, func(ctx context.Context) error { p.watcher.Run(ctx); return nil })
	if p.sftp != nil {
		run(&visits, ctx, func(ctx context.Context) error { return p.sftp.Serve(ctx, p.cfg.SFTP) })
	}
	run(&tellers, recording, p.views.Run)
	if p.node != nil {
		run(&wg, reaching, p.serveCluster)
	}
	<-ctx.Done()
	p.service.stop()
	// The connections to the managers close last, so that all file activity is recorded.
	visits.Wait()
	recorded()
	tellers.Wait()
	p.grpc.Stop()
	leave()
	wg.Wait()
	p.set.Release()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}
