package clustertest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// Proxy is a storage proxy with one volume, in a cluster.
type Proxy struct {
	*Cluster
	Root    string // of the volume
	Config  storage.Config
	Address string
	Stop    func()
}

// NewProxy starts the storage proxy s1 with the volume main.
func NewProxy(t *testing.T, c *Cluster) *Proxy {
	t.Helper()
	return NewProxyOf(t, c, "s1", storage.VolumeConfig{Name: "main", MountPath: filepath.Join(t.TempDir(), "volume")})
}

// NewProxyOf starts a storage proxy with a name and one volume.
func NewProxyOf(t *testing.T, c *Cluster, name string, vol storage.VolumeConfig) *Proxy {
	t.Helper()
	return NewProxyWith(t, c, name, nil, vol)
}

// NewProxyWith is NewProxyOf with a registry for the metrics of the proxy; nil disables them.
func NewProxyWith(t *testing.T, c *Cluster, name string, metrics *prometheus.Registry, vol storage.VolumeConfig) *Proxy {
	t.Helper()
	if vol.Backend == "" {
		vol.Backend, vol.Create = testenv.Plugin(t, "volume/vfs"), true
	}
	token, err := c.Manager.NewJoinToken(t.Context(), "storage")
	if err != nil {
		t.Fatal(err)
	}
	d := &Proxy{Cluster: c, Root: vol.MountPath}
	var mu sync.Mutex
	var handler http.Handler = http.NotFoundHandler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	d.Address = srv.URL
	d.Config = storage.Config{
		Name: name, Dir: t.TempDir(), PublicURL: srv.URL, Managers: []string{c.Manager.ClusterAddress()},
		JoinToken: token, CAFingerprint: c.Manager.Fingerprint(),
		Registry: metrics, Volumes: []storage.VolumeConfig{vol}, ObjectStorages: []string{"127.0.0.1"},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	d.StartProxy(t, func(h http.Handler) {
		mu.Lock()
		defer mu.Unlock()
		handler = h
	})
	return d
}

// StartProxy runs the proxy and waits until the manager has a report of this run, not of an earlier one.
func (d *Proxy) StartProxy(t *testing.T, serve func(http.Handler)) {
	t.Helper()
	d.Config.Version = uuid.NewString()
	d.RunProxy(t, serve)
	managertest.Eventually(t, "volume is healthy", func() bool {
		v, err := d.Client.Volume.Query().Where(volume.Name(d.Config.Volumes[0].Name)).Only(d.System(t))
		return err == nil && v.Health == "healthy" &&
			d.Client.StorageProxy.Query().Where(storageproxy.Name(d.Config.Name), storageproxy.Version(d.Config.Version)).ExistX(d.System(t))
	})
}

// RunProxy runs the proxy until Stop is called or the test ends. If serve is not nil, it gets the handler.
func (d *Proxy) RunProxy(t *testing.T, serve func(http.Handler)) {
	t.Helper()
	p, err := storage.New(d.Config)
	if err != nil {
		t.Fatal(err)
	}
	if serve != nil {
		serve(p.Handler())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var once sync.Once
	d.Stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("storage proxy: %v", err)
			}
		})
	}
	t.Cleanup(d.Stop)
}

// CreateFolderMutation is the document that creates a folder.
const CreateFolderMutation = `mutation($in: CreateVfolderInput!) { createVfolder(input: $in) { vfolder { id } } }`

// CreateFolder creates a folder as a client, as soon as a proxy is connected.
func CreateFolder(t *testing.T, as *managertest.Client, in managertest.Vars) (uuid.UUID, managertest.Errors) {
	t.Helper()
	var got struct {
		CreateVfolder struct{ Vfolder struct{ ID uuid.UUID } }
	}
	var errs managertest.Errors
	managertest.Eventually(t, "proxy is connected", func() bool {
		errs = as.Ask(t, CreateFolderMutation, managertest.Vars{"in": in}, &got)
		return errs.Code() != "UNAVAILABLE"
	})
	return got.CreateVfolder.Vfolder.ID, errs
}

// FolderRow returns the row of a folder.
func (d *Proxy) FolderRow(t *testing.T, id uuid.UUID) *ent.Vfolder {
	t.Helper()
	return d.Client.Vfolder.GetX(d.System(t), id)
}
