package storagetest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
)

// Timeout limits every wait, including long work on a busy machine; nothing takes a fraction of it.
const Timeout = 5 * time.Minute

// Host is a running proxy with one volume on a temporary directory, a manager
// that watches it, and a folder.
type Host struct {
	TB       testing.TB
	Config   storage.Config
	Mount    string
	Logs     *Log
	Signer   *ticket.Signer
	Proxy    *storage.Proxy
	API      storagepb.StorageClient
	Objects  storagepb.ObjectsClient
	HTTP     *httptest.Server
	Registry *prometheus.Registry
	reports  <-chan *storagepb.Report
	Stop     func()

	Ref  *storagepb.FolderRef
	Path string // of the folder on disk
}

// Log records the log of the proxy.
type Log struct {
	mu  sync.Mutex
	out strings.Builder
}

// Write appends to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// NewSigner returns a signer of tickets with a new key.
func NewSigner(t testing.TB) *ticket.Signer {
	t.Helper()
	key, err := ticket.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return ticket.NewSigner(key)
}

// New starts a proxy with a volume on a temporary directory.
func New(t testing.TB) *Host {
	t.Helper()
	return NewOn(t, filepath.Join(t.TempDir(), "mount"))
}

// Memory returns a directory in memory, where making 100,000 files is quick.
func Memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "storage")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// NewOn is New with the volume on a directory.
func NewOn(t testing.TB, mount string) *Host {
	t.Helper()
	h := &Host{TB: t, Mount: mount, Signer: NewSigner(t)}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }) // left by a killed proxy
	h.Config = storage.Config{
		Name: "s1", Dir: t.TempDir(), PublicURL: "/storage", ObjectStorages: []string{"127.0.0.1"},
		Volumes: []storage.VolumeConfig{{
			Name: "main", Backend: VFS, MountPath: h.Mount, Create: true,
			OptionsJSON: `{"usage_max_age_s": 0}`,
		}},
	}
	h.Start()
	t.Cleanup(func() { h.Stop() })
	h.Ref = &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope}); err != nil {
		t.Fatal(err)
	}
	f, err := h.API.CreateFolder(h.Ctx(), h.Ref)
	if err != nil {
		t.Fatal(err)
	}
	h.Path = filepath.Join(h.Mount, f.Path)
	return h
}

// Start starts a proxy on the host's configuration and waits until its volume is healthy. A second
// call is a restart.
func (h *Host) Start() { h.StartUntil(storagepb.Volume_HEALTHY, "") }

// StartUntil is Start for a volume that is expected in another state, with a reason that contains
// the text.
func (h *Host) StartUntil(want storagepb.Volume_Health, words string) {
	h.TB.Helper()
	h.Logs = &Log{}
	h.Registry = prometheus.NewRegistry()
	h.Config.Registry = h.Registry
	h.Config.Logger = slog.New(requestid.LogHandler{Handler: slog.NewTextHandler(h.Logs, &slog.HandlerOptions{Level: slog.LevelDebug})})
	p, err := storage.New(h.Config)
	if err != nil {
		h.TB.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			h.TB.Errorf("run: %v", err)
		}
	})
	l := bufconn.Listen(1 << 20)
	wg.Go(func() { _ = p.GRPC().Serve(l) })
	conn, err := grpc.NewClient("passthrough:proxy",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.TB.Fatal(err)
	}
	h.Proxy, h.API, h.Objects = p, storagepb.NewStorageClient(conn), storagepb.NewObjectsClient(conn)
	h.HTTP = httptest.NewServer(http.StripPrefix("/storage", p.Handler()))
	watch, err := h.API.Watch(ctx, &storagepb.WatchRequest{TicketKeys: [][]byte{h.Signer.PublicKey()}})
	if err != nil {
		h.TB.Fatal(err)
	}
	reports := make(chan *storagepb.Report, 64)
	h.reports = reports
	wg.Go(func() {
		for {
			r, err := watch.Recv()
			if err != nil {
				return
			}
			select {
			case reports <- r:
			default:
			}
		}
	})
	var once sync.Once
	h.Stop = func() {
		once.Do(func() {
			h.HTTP.CloseClientConnections()
			h.HTTP.Close()
			cancel() // before the connection ends, so that calls end because the proxy stops
			wg.Wait()
			conn.Close()
		})
	}
	h.waitReason(want, words)
}

// WaitHealth waits until Watch reports a health and returns that report.
func (h *Host) WaitHealth(want storagepb.Volume_Health) *storagepb.Report {
	h.TB.Helper()
	return h.waitReason(want, "")
}

func (h *Host) waitReason(want storagepb.Volume_Health, words string) *storagepb.Report {
	h.TB.Helper()
	deadline := time.After(Timeout)
	for {
		select {
		case r := <-h.reports:
			if v := r.Volumes[0]; v.Health == want && strings.Contains(v.Message, words) {
				return r
			}
		case <-deadline:
			h.TB.Fatalf("volume is not %v within %v; log:\n%s", want, Timeout, h.Logs)
		}
	}
}

// Ctx returns a context that ends with the test or after Timeout.
func (h *Host) Ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	h.TB.Cleanup(cancel)
	return ctx
}

// Claims returns the content of a ticket for the host's folder.
func (h *Host) Claims(operation, path string, size int64) ticket.Claims {
	return ticket.Claims{
		Operation: operation, Volume: "main", Scope: h.Ref.Scope, Folder: h.Ref.Folder,
		Path: path, Size: size, User: "u1", Expires: time.Now().Add(time.Hour),
	}
}

// Ticket returns a signed ticket for the host's folder.
func (h *Host) Ticket(operation, path string, size int64) string {
	return h.Signer.Sign(h.Claims(operation, path, size))
}

// Write writes a file to the folder as a container would.
func (h *Host) Write(path, content string) {
	h.TB.Helper()
	full := filepath.Join(h.Path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.TB.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		h.TB.Fatal(err)
	}
}

// Touch creates an empty file.
func (h *Host) Touch(path string) {
	h.TB.Helper()
	fd, err := unix.Open(filepath.Join(h.Path, path), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		h.TB.Fatal(err)
	}
	unix.Close(fd)
}

// Get sends a request and returns the answer with its body unread.
func (h *Host) Get(path string) *http.Response {
	h.TB.Helper()
	resp, err := http.Get(h.HTTP.URL + "/storage" + path)
	if err != nil {
		h.TB.Fatal(err)
	}
	return resp
}
