package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/cluster"
)

// Benchmarks run the gateway in a separate process: this test program with these variables.
const (
	benchCA   = "BERTH_BENCH_CA"   // directory of the cluster's authority
	benchPort = "BERTH_BENCH_PORT" // port of the app
	benchBare = "BERTH_BENCH_BARE" // URL of the app for a reverse proxy of the standard library
)

func TestMain(m *testing.M) {
	if os.Getenv(benchCA) != "" {
		if err := serveBench(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if app := os.Getenv(benchBare); app != "" {
		fmt.Fprintln(os.Stderr, serveBare(app))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveBare serves an app with httputil.ReverseProxy and nothing else, at the address in the first
// argument. It shows which part of the cost of a request is that of net/http.
func serveBare(app string) error {
	to, err := url.Parse(app)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: idleConns},
	}
	return http.ListenAndServe(os.Args[1], proxy)
}

// serveBench prints the address for agents. Once an agent has connected, it prints the address and
// the host of one app, which it serves until stdin ends.
func serveBench() error {
	ca, err := cluster.LoadOrCreateCA(os.Getenv(benchCA))
	if err != nil {
		return err
	}
	nodes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	peers := make(chan *cluster.Peer, 1)
	hub := cluster.NewHub(cluster.HubConfig{
		CA: ca, Join: func(context.Context, string, string, string) error { return nil }, Managers: func() []string { return nil },
		OnPeer: func(ctx context.Context, p *cluster.Peer) {
			peers <- p
			<-ctx.Done()
		},
	})
	go func() { _ = hub.Serve(context.Background(), nodes) }()
	fmt.Println(nodes.Addr(), ca.Fingerprint())
	port, err := strconv.Atoi(os.Getenv(benchPort))
	if err != nil {
		return err
	}
	w := assemble(context.Background(), <-peers, port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = (&http.Server{Handler: w.handler(), Protocols: cleartext()}).Serve(l) }()
	fmt.Println(l.Addr(), w.host)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// proxied is a proxy in front of the app of a benchmark.
type proxied struct {
	name, address, host string
	pid                 int
}

const bulk = 256 << 20

// program is the app of benchmarks.
func program(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/socket":
		c, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	case "/bulk":
		rw.Header().Set("Content-Length", strconv.Itoa(bulk))
		block := make([]byte, 256<<10)
		for range bulk / len(block) {
			if _, err := rw.Write(block); err != nil {
				return
			}
		}
	default:
		_, _ = rw.Write(make([]byte, 1024))
	}
}

// proxies starts the gateway, a bare proxy of net/http, and nginx and configurable-http-proxy if they
// are installed.
func proxies(b *testing.B) []proxied {
	b.Helper()
	app := httptest.NewServer(http.HandlerFunc(program))
	b.Cleanup(app.Close)
	behind := strings.TrimPrefix(app.URL, "http://")
	_, port, _ := net.SplitHostPort(behind)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchCA+"="+b.TempDir(), benchPort+"="+port)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	said := func() []string {
		line, err := lines.ReadString('\n')
		f := strings.Fields(line)
		if err != nil || len(f) != 2 {
			b.Fatal(line, err)
		}
		return f
	}
	f := said()
	agent(b, f[0], f[1])
	f = said()
	list := []proxied{{"gateway", f[0], f[1], cmd.Process.Pid}}
	b.Setenv(benchBare, app.URL)
	at := free(b)
	list = append(list, background(b, "net-http", at, os.Args[0], at))
	if path := first(os.Getenv("BERTH_NGINX"), "/usr/sbin/nginx"); path != "" {
		list = append(list, nginx(b, path, behind))
	}
	if path := first(os.Getenv("BERTH_CHP"), "configurable-http-proxy"); path != "" {
		at := free(b)
		_, p, _ := net.SplitHostPort(at)
		list = append(list, background(b, "CHP", at, path, "--ip", "127.0.0.1", "--port", p, "--api-port", strings.Split(free(b), ":")[1], "--default-target", app.URL, "--log-level", "error"))
	}
	return list
}

// agent starts an agent in this process. A port of its kernels is a port of this machine.
func agent(b *testing.B, manager, fingerprint string) {
	b.Helper()
	n, err := cluster.NewNode(cluster.NodeConfig{
		Role: cluster.RoleAgent, Name: "bench", Dir: b.TempDir(), Managers: []string{manager}, JoinToken: "any", CAFingerprint: fingerprint, Streams: serveLoopback,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	go func() { _ = n.Serve(ctx, grpc.NewServer()) }()
}

// first returns the first of some programs that exists.
func first(names ...string) string {
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil && n != "" {
			return path
		}
	}
	return ""
}

func free(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func nginx(b *testing.B, path, behind string) proxied {
	dir, at := b.TempDir(), free(b)
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  upstream app { server %[3]s; keepalive 32; }
  server { listen %[2]s; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_read_timeout 1h; } }
}`, dir, at, behind)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	return background(b, "nginx", at, path, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "conf"))
}

// background starts a proxy that listens at an address.
func background(b *testing.B, name, at string, argv ...string) proxied {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 300 {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return proxied{name, at, at, cmd.Process.Pid}
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("%s does not listen", name)
	return proxied{}
}

// busy returns the CPU time of a process.
func busy(pid int) (all time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, ticks := range f[11:13] {
		n, _ := strconv.Atoi(ticks)
		all += time.Duration(n) * 10 * time.Millisecond
	}
	return all
}

func (p proxied) get(client *http.Client, path string) error {
	r, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return err
	}
	r.Host = p.host
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", p.name, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (p proxied) socket(b *testing.B) *websocket.Conn {
	b.Helper()
	c, _, err := websocket.Dial(context.Background(), "http://"+p.address+"/socket", &websocket.DialOptions{Host: p.host})
	if err != nil {
		b.Fatal(p.name, err)
	}
	return c
}

// BenchmarkProxy compares the CPU time of proxies for a request of 1 KiB, for a download of 256 MiB, and
// the time of an echo over a WebSocket.
func BenchmarkProxy(b *testing.B) {
	list := proxies(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	for _, p := range list {
		b.Run("request/"+p.name, func(b *testing.B) {
			before := busy(p.pid)
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					for n := i; n < b.N; n += 16 {
						if err := p.get(client, "/"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((busy(p.pid)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
	for _, p := range list {
		b.Run("download/"+p.name, func(b *testing.B) {
			b.SetBytes(bulk)
			before := busy(p.pid)
			for range b.N {
				if err := p.get(client, "/bulk"); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((busy(p.pid)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
	for _, p := range list {
		b.Run("echo/"+p.name, func(b *testing.B) {
			c := p.socket(b)
			defer c.CloseNow()
			took := make([]time.Duration, 0, b.N)
			before := busy(p.pid)
			for range b.N {
				at := time.Now()
				if err := c.Write(context.Background(), websocket.MessageText, []byte("hello")); err != nil {
					b.Fatal(err)
				}
				if _, _, err := c.Read(context.Background()); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64((busy(p.pid)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkIdleSockets reports the memory of proxies for each of 2,000 idle WebSockets.
func BenchmarkIdleSockets(b *testing.B) {
	const n = 2000
	for _, p := range proxies(b) {
		b.Run(p.name, func(b *testing.B) {
			for range b.N {
				before := rss(p.pid)
				open := make([]*websocket.Conn, n)
				for i := range open {
					open[i] = p.socket(b)
				}
				time.Sleep(2 * time.Second)
				after := rss(p.pid)
				b.ReportMetric(float64(after-before)/n, "KiB/socket")
				b.ReportMetric(float64(after), "KiB")
				for _, c := range open {
					_ = c.CloseNow()
				}
			}
		})
	}
}

// rss returns the resident memory of a process in KiB.
func rss(pid int) (kib int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &kib)
		}
	}
	return kib
}
