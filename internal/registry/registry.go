// Package registry is an OCI registry inside this process, on one directory. Images are added by
// Import, and by network clients with a push token, which permits one repository; others can only
// read. berthd up serves the starter images and images of sessions from it, and tests serve their
// images.
package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the only storage driver that is used

	"github.com/berthhq/berth/internal/registry/pushtoken"
)

// Registry holds images in a directory.
type Registry struct {
	app      *handlers.App
	password string // for readers; empty: everyone may read
	pushKey  pushtoken.Key
}

// Open creates the directory if it is missing.
func Open(dir string) (*Registry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	quieten()
	return &Registry{app: handlers.NewApp(context.Background(), &configuration.Configuration{
		Version: configuration.CurrentVersion,
		Storage: configuration.Storage{
			"filesystem": configuration.Parameters{"rootdirectory": dir},
			"delete":     configuration.Parameters{"enabled": true},
			"cache":      configuration.Parameters{"blobdescriptor": "inmemory"},
			"maintenance": configuration.Parameters{"uploadpurging": map[any]any{
				// An agent that was killed leaves its upload.
				"enabled": true, "age": "24h", "interval": "6h", "dryrun": false,
			}},
		},
		HTTP:    configuration.HTTP{Secret: rand.Text()},
		Catalog: configuration.Catalog{MaxEntries: 1000},
		Tags:    configuration.Tags{MaxTags: 1000},
	})}, nil
}

// Close ends the background work of the registry.
func (r *Registry) Close() error { return r.app.Shutdown() }

// ServeHTTP answers clients with the password or a push token. Other accounts of the machine can reach
// a loopback port, and must neither read nor change the images.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.push(w, req) {
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if _, _, tried := req.BasicAuth(); r.pushKey != nil && !tried {
			refuse(w, "writing needs a push token") // clients send one only after a challenge
			return
		}
		http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
		return
	}
	if !r.known(req) {
		refuse(w, "only the platform can use this registry")
		return
	}
	r.app.ServeHTTP(w, req)
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
