// Package containerd runs containers with runc on the agent's own containerd. It passes absolute
// paths of the shim and runc, so it does not depend on PATH or other installed software. It selects
// containers by the agent's label, so several agents can share one containerd.
package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"

	"github.com/berthhq/berth/agent/runtime"
)

// namespace is the containerd namespace of all agents. They distinguish their containers by label.
const namespace = "berth"

// Config has the paths of the programs and files. All are absolute.
type Config struct {
	Socket string // of containerd
	Agent  string // value of the agent label
	Dir    string // for FIFOs and runc's state
	Shim   string // containerd-shim-runc-v2
	Runner string // berth-runner, the log writer
	Runc   string // the OCI runtime binary
	// Transfers is the number of layers that are fetched at a time, over all pulls; 0 = DefaultTransfers.
	Transfers int
	Fetched   Fetched // nil: nothing is counted
	Lazy      Lazy
	Logger    *slog.Logger
}

// Fetched counts what pulls fetch.
type Fetched interface {
	Received(source string, n int) // bytes from "registry" or "mirror"
	Fetched(source, result string) // a part from "registry", "mirror" or "agent": "ok", "failed" or "corrupt"
	// Lazily counts what reads of files have fetched: bytes, parts that were refused, and the change of the
	// number of reads that wait.
	Lazily(bytes, refused int64, waiting int)
}

// DefaultTransfers is the number of layers that are fetched at a time.
const DefaultTransfers = 4

// Runtime implements runtime.Runtime.
type Runtime struct {
	cfg    Config
	client *client.Client

	store     string        // directory of the content store, "" = it is not on this host
	transfers chan struct{} // one element for each layer that is being fetched
	arriving  *arrivals
	lazies    *lazies

	mu     sync.Mutex
	images map[string]parsedImage // by manifest digest
	used   map[string]time.Time   // images, by name, since the times were last stored
}

var _ runtime.Runtime = (*Runtime)(nil)

// New connects to containerd and waits until it responds or ctx ends.
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	// FIFOs of commands of an earlier process no longer have a reader.
	if err := os.RemoveAll(filepath.Join(cfg.Dir, "fifo")); err != nil {
		return nil, err
	}
	for _, dir := range []string{"fifo", "runc"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	c, err := connect(ctx, cfg.Socket)
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, client: c, images: map[string]parsedImage{}, used: map[string]time.Time{}, arriving: newArrivals(),
		lazies: newLazies(), transfers: make(chan struct{}, cmp.Or(cfg.Transfers, DefaultTransfers)),
	}
	if r.store, err = contentDirectory(named(ctx), c); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := errors.Join(r.dropSnapshots(ctx), r.wakeAll(ctx), r.adoptLazies(ctx)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func connect(ctx context.Context, socket string) (*client.Client, error) {
	// A relative path is not a valid address.
	if !filepath.IsAbs(socket) {
		return nil, fmt.Errorf("containerd socket %q is not absolute: %w", socket, errdefs.ErrInvalidArgument)
	}
	c, err := client.New(socket, client.WithDefaultNamespace(namespace), client.WithTimeout(time.Second))
	for err != nil {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("containerd at %s: %w: %w", socket, err, errdefs.ErrUnavailable)
		case <-time.After(50 * time.Millisecond):
		}
		c, err = client.New(socket, client.WithDefaultNamespace(namespace), client.WithTimeout(time.Second))
	}
	for {
		serving, err := c.IsServing(ctx)
		if serving {
			return c, nil
		}
		if ctx.Err() != nil {
			c.Close()
			return nil, fmt.Errorf("containerd at %s does not serve: %w: %w", socket, err, errdefs.ErrUnavailable)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Answers implements runtime.Runtime.
func (r *Runtime) Answers(ctx context.Context) error {
	serving, err := r.client.IsServing(ctx)
	if err == nil && !serving {
		err = errdefs.ErrUnavailable
	}
	if err != nil {
		return fmt.Errorf("containerd does not serve: %w", err)
	}
	return nil
}

// Close closes the connection; containers continue.
func (r *Runtime) Close() error {
	r.closeLazies()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := r.storeUses(named(ctx)); err != nil {
		r.cfg.Logger.Debug("times of the last use of images not stored", "error", err)
	}
	return r.client.Close()
}

// named adds containerd's namespace and a silent logger to a context: the client library also
// returns everything that it logs as an error.
func named(ctx context.Context) context.Context {
	return log.WithLogger(namespaces.WithNamespace(ctx, namespace), quiet)
}

var quiet = func() *log.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}()

// Containers returns the agent's containers.
func (r *Runtime) Containers(ctx context.Context) ([]runtime.Container, error) {
	ctx = named(ctx)
	list, err := r.client.Containers(ctx, fmt.Sprintf("labels.%q==%q", runtime.LabelAgent, r.cfg.Agent))
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	out := make([]runtime.Container, 0, len(list))
	for _, c := range list {
		labels, err := c.Labels(ctx)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("labels of container %s: %w", c.ID(), err)
		}
		out = append(out, &container{runtime: r, id: c.ID(), loaded: c, labels: labels})
	}
	return out, nil
}
