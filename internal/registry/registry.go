// Package registry is an OCI registry inside this process, on one directory. Images are added by
// Import, and by network clients with a push token, which permits one repository or one namespace; others
// can only read. berthd up serves the starter images and images of sessions from it, and tests serve their
// images.
package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/store"
)

// Registry holds images in a directory.
type Registry struct {
	store    *store.Store
	log      *slog.Logger
	password string // for readers; empty: everyone may read
	pushKey  pushtoken.Key
	spent    ledger
	purge    context.CancelFunc
	purged   chan struct{}
}

// Uploads that no request has written to for uploadAge are removed: an agent that was killed leaves its
// upload.
const (
	uploadAge  = 24 * time.Hour
	purgeEvery = 6 * time.Hour
)

// Open creates the directory if it is missing.
func Open(dir string) (*Registry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	s, err := store.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Registry{store: s, log: slog.New(slog.DiscardHandler), purge: cancel, purged: make(chan struct{})}
	r.spent.tokens = map[string]spending{}
	go r.purgeUploads(ctx)
	return r, nil
}

// Close ends the background work of the registry.
func (r *Registry) Close() error {
	r.purge()
	<-r.purged
	return nil
}

// Log makes the registry log what it cannot answer. Call it before Serve.
func (r *Registry) Log(log *slog.Logger) { r.log = log }

func (r *Registry) purgeUploads(ctx context.Context) {
	defer close(r.purged)
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		if _, _, err := r.store.PurgeUploads(ctx, uploadAge, false); err != nil && ctx.Err() == nil {
			r.log.Warn("remove old uploads of the registry", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ServeHTTP answers clients with the password or a push token. Other accounts of the machine can reach
// a loopback port, and must neither read nor change the images.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.push(w, req) {
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if _, _, tried := req.BasicAuth(); r.pushKey != nil && !tried {
			challenge(w, "writing needs a push token") // clients send one only after a challenge
			return
		}
		deny(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry is read-only")
		return
	}
	if !r.known(req) {
		challenge(w, "only the platform can use this registry")
		return
	}
	r.serve(w, req, access{})
}

// Serve answers readers on l until ctx ends.
func (r *Registry) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, r)
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve registry: %w", err)
	case <-ctx.Done():
	}
	err := s.Close() // clients whose connection is cut repeat the request
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// Listen opens a loopback port for the registry in dir and stores it there: references to images
// contain the port, so it must not change.
func Listen(dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("listen for registry: %w", err)
	}
	file := filepath.Join(dir, "address")
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for registry: %w", err)
	}
	address, known := strings.TrimSpace(string(b)), err == nil
	if !known {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil && known {
		return nil, fmt.Errorf("listen for registry on %s, which is part of the names of its images: %w: %w", address, errdefs.ErrFailedPrecondition, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for registry: %w", err)
	}
	if !known {
		if err := os.WriteFile(file, []byte(l.Addr().String()+"\n"), 0o600); err != nil {
			l.Close()
			return nil, fmt.Errorf("listen for registry: %w", err)
		}
	}
	return l, nil
}
