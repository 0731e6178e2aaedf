package storage_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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

// vfs is the program of the real plugin, built once.
var vfs string

// timeout bounds every wait, also for long work on a machine that has other things to
// do; nothing takes a fraction of it.
const timeout = 5 * time.Minute

func TestMain(m *testing.M) {
	if serveLiar() || serveTeller() || serveShares() {
		return
	}
	if config := os.Getenv(childEnv); config != "" {
		fmt.Fprintln(os.Stderr, child(config))
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "storage")
	if err != nil {
		panic(err)
	}
	vfs = filepath.Join(dir, "vfs")
	out, err := exec.Command("go", "build", "-o", vfs, "../plugins/volume/vfs").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build plugin: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// host is a running proxy with one volume on a temporary directory, a manager
// that watches it, and a folder.
type host struct {
	t       testing.TB
	cfg     storage.Config
	mount   string
	logs    *lines
	signer  *ticket.Signer
	proxy   *storage.Proxy
	api     storagepb.StorageClient
	objects storagepb.ObjectsClient
	http    *httptest.Server
	reg     *prometheus.Registry
	reports <-chan *storagepb.Report
	stop    func()

	ref  *storagepb.FolderRef
	path string // of the folder on disk
}

// lines gathers the log.
type lines struct {
	mu  sync.Mutex
	out strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func newSigner(t testing.TB) *ticket.Signer {
	t.Helper()
	key, err := ticket.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return ticket.NewSigner(key)
}

func newHost(t testing.TB) *host {
	t.Helper()
	return newHostOn(t, filepath.Join(t.TempDir(), "mount"))
}

// memory is a directory in memory, where making 100,000 files is quick.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "storage")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newHostOn(t testing.TB, mount string) *host {
	t.Helper()
	h := &host{t: t, mount: mount, signer: newSigner(t)}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }) // what a killed proxy has left
	h.cfg = storage.Config{
		Name: "s1", Dir: t.TempDir(), PublicURL: "/storage", ObjectStorages: []string{"127.0.0.1"},
		Volumes: []storage.VolumeConfig{{
			Name: "main", Backend: vfs, MountPath: h.mount, Create: true,
			OptionsJSON: `{"usage_max_age_s": 0}`,
		}},
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	h.ref = &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}
	if _, err := h.api.CreateScope(h.ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.ref.Scope}); err != nil {
		t.Fatal(err)
	}
	f, err := h.api.CreateFolder(h.ctx(), h.ref)
	if err != nil {
		t.Fatal(err)
	}
	h.path = filepath.Join(h.mount, f.Path)
	return h
}

// start starts a proxy on the host's configuration and waits until its volume
// is healthy. It is called again to act out a restart.
func (h *host) start() { h.startUntil(storagepb.Volume_HEALTHY, "") }

// startUntil is start for a volume that is to be in another state, for a
// reason that holds these words.
func (h *host) startUntil(want storagepb.Volume_Health, words string) {
	h.t.Helper()
	h.logs = &lines{}
	h.reg = prometheus.NewRegistry()
	h.cfg.Registerer = h.reg
	h.cfg.Logger = slog.New(requestid.LogHandler{Handler: slog.NewTextHandler(h.logs, &slog.HandlerOptions{Level: slog.LevelDebug})})
	p, err := storage.New(h.cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			h.t.Errorf("run: %v", err)
		}
	})
	l := bufconn.Listen(1 << 20)
	wg.Go(func() { _ = p.GRPC().Serve(l) })
	conn, err := grpc.NewClient("passthrough:proxy",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.proxy, h.api, h.objects = p, storagepb.NewStorageClient(conn), storagepb.NewObjectsClient(conn)
	h.http = httptest.NewServer(http.StripPrefix("/storage", p.Handler()))
	watch, err := h.api.Watch(ctx, &storagepb.WatchRequest{TicketKeys: [][]byte{h.signer.PublicKey()}})
	if err != nil {
		h.t.Fatal(err)
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
	h.stop = func() {
		once.Do(func() {
			h.http.CloseClientConnections()
			h.http.Close()
			cancel() // before the connection goes: calls end because the proxy does
			wg.Wait()
			conn.Close()
		})
	}
	h.waitReason(want, words)
}

// waitHealth waits until Watch reports a health and returns that report.
func (h *host) waitHealth(want storagepb.Volume_Health) *storagepb.Report {
	h.t.Helper()
	return h.waitReason(want, "")
}

func (h *host) waitReason(want storagepb.Volume_Health, words string) *storagepb.Report {
	h.t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case r := <-h.reports:
			if v := r.Volumes[0]; v.Health == want && strings.Contains(v.Message, words) {
				return r
			}
		case <-deadline:
			h.t.Fatalf("volume is not %v within %v; log:\n%s", want, timeout, h.logs)
		}
	}
}

func (h *host) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	h.t.Cleanup(cancel)
	return ctx
}

// claims is a ticket's content for the host's folder.
func (h *host) claims(operation, path string, size int64) ticket.Claims {
	return ticket.Claims{
		Operation: operation, Volume: "main", Scope: h.ref.Scope, Folder: h.ref.Folder,
		Path: path, Size: size, User: "u1", Expires: time.Now().Add(time.Hour),
	}
}

func (h *host) ticket(operation, path string, size int64) string {
	return h.signer.Sign(h.claims(operation, path, size))
}

// write puts a file into the folder as a container would.
func (h *host) write(path, content string) {
	h.t.Helper()
	full := filepath.Join(h.path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// touch makes an empty file, quickly.
func (h *host) touch(path string) {
	h.t.Helper()
	fd, err := unix.Open(filepath.Join(h.path, path), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		h.t.Fatal(err)
	}
	unix.Close(fd)
}

// get makes a request whose answer the caller reads.
func (h *host) get(path string) *http.Response {
	h.t.Helper()
	resp, err := http.Get(h.http.URL + "/storage" + path)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}
