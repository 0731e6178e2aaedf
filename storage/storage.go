// Package storage is the storage proxy: it keeps folders on volumes, serves
// the control calls of managers over gRPC and people's uploads and downloads
// over HTTP. cmd/berthd runs it.
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
	"github.com/berthhq/berth/storage/door"
	"github.com/berthhq/berth/storage/object"
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
	Dir     string // state: which file system each volume is, the node's certificate
	Volumes []VolumeConfig
	// PublicURL is the base of the HTTP side as people reach it; "" or a path
	// means the manager's origin.
	PublicURL string
	// SFTP is where people reach their folders by SFTP; nil for nowhere. The proxy
	// closes it.
	SFTP net.Listener
	// Origins whose pages may use the HTTP side; none for the same origin.
	Origins []string
	// Managers, JoinToken and CAFingerprint lead to the cluster. Without
	// Managers nothing is dialled and the caller serves GRPC itself.
	Managers []string
	// Manager tells what access tokens open and hears what people did; nil means the
	// managers of the cluster.
	Manager       view.Manager
	JoinToken     string
	CAFingerprint string
	// ObjectStorages are hosts and networks where object storages that users name may
	// be, beside the Internet.
	ObjectStorages []string
	Version        string
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil = no metrics
}

// Proxy is a storage proxy. Make it with New.
type Proxy struct {
	cfg     Config
	log     *slog.Logger
	set     *volume.Set
	keys    *keyring
	http    *transfer.Server
	grpc    *grpc.Server
	service *service
	views   *view.Views
	door    *door.Door    // nil without SFTP
	node    *cluster.Node // nil outside a cluster
	watcher *opsserver.Watcher
}

// New checks the configuration and the kernel and puts the parts together.
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
		Volumes: set, Tickets: verifier, Origins: cfg.Origins, Logger: log, Registerer: cfg.Registerer,
	})
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(set); err != nil {
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
	if p.door, err = newDoor(cfg, p.views, log); err != nil {
		return nil, err
	}
	if cfg.Registerer != nil && p.node != nil {
		p.node.Measure(cfg.Registerer)
	}
	p.watcher = opsserver.NewWatcher(cluster.RoleStorage, p.Checks(), cfg.Registerer, log)
	p.service = newService(p)
	if p.node != nil {
		p.service.learn = p.node.Learn
	}
	p.grpc = grpc.NewServer(grpc.ChainUnaryInterceptor(p.unary), grpc.ChainStreamInterceptor(p.stream))
	storagepb.RegisterStorageServer(p.grpc, p.service)
	storagepb.RegisterObjectsServer(p.grpc, &objects{service: p.service, mover: object.New(data, reach)})
	return p, nil
}

// probe refuses a kernel or sandbox without openat2 (Linux 5.6): it is what
// keeps paths inside their folder.
func probe() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return fmt.Errorf("storage: the kernel has no openat2: %w", err)
	}
	return unix.Close(fd)
}

// Handler is the HTTP side. It may be mounted below a prefix with
// http.StripPrefix.
func (p *Proxy) Handler() http.Handler { return p.http }

// GRPC is the control side, for a caller who serves it on a listener of theirs.
func (p *Proxy) GRPC() *grpc.Server { return p.grpc }

// HostKey is the fingerprint of the SFTP side's key; "" without one.
func (p *Proxy) HostKey() string {
	if p.door == nil {
		return ""
	}
	return p.door.Fingerprint()
}

// Volumes tells the state of every volume.
func (p *Proxy) Volumes() []volume.State {
	var out []volume.State
	for _, v := range p.set.All() {
		out = append(out, v.State())
	}
	return out
}

// Run works until the context ends or the cluster refuses the node, and
// leaves no plugin process behind, and no mount of its own.
func (p *Proxy) Run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	telling, told := context.WithCancel(context.WithoutCancel(parent))
	defer told()
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
	if p.door != nil {
		run(&visits, ctx, func(ctx context.Context) error { return p.door.Serve(ctx, p.cfg.SFTP) })
	}
	run(&tellers, telling, p.views.Run)
	if p.node != nil {
		run(&wg, reaching, p.serveCluster)
	}
	<-ctx.Done()
	p.service.stop()
	// Managers are told what people did to the last, and only then left.
	visits.Wait()
	told()
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
