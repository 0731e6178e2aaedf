package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
)

// node is an agent whose kernels are this process: the ports of a kernel are those of the loopback
// interface.
type node struct{ ctx context.Context }

// Open implements portstream.Opener.
func (n node) Open(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go serveLoopback(n.ctx, theirs)
	return ours, nil
}

// serveLoopback serves a stream to a port of this machine.
func serveLoopback(ctx context.Context, stream net.Conn) {
	call, err := portstream.Accept(stream)
	if err != nil {
		return
	}
	call.Connect(ctx, func(ctx context.Context, _ string, port uint16) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
		}
		return c, nil
	})
}

// world is a gateway with one entry in one app.
type world struct {
	g      *Gateway
	e      *entry
	host   string // of the app
	url    string // of the gateway
	visits atomic.Int64
}

// newWorld starts a gateway in front of an app.
func newWorld(t *testing.T, program http.Handler) *world {
	t.Helper()
	behind := httptest.NewUnstartedServer(program)
	behind.Config.Protocols = cleartext()
	behind.Start()
	t.Cleanup(behind.Close)
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return newWorldAt(t, port)
}

func newWorldAt(t *testing.T, port int) *world {
	t.Helper()
	w := assemble(t.Context(), node{t.Context()}, port)
	srv := httptest.NewUnstartedServer(w.handler())
	srv.Config.Protocols = cleartext()
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(w.e.end)
	w.url = srv.URL
	return w
}

// assemble returns a gateway without a server.
func assemble(ctx context.Context, ports portstream.Opener, port int) *world {
	w := &world{}
	target := app.Target{Session: id.New(id.Session), App: "desk"}
	w.host = target.Label() + ".apps.test"
	inside, end := context.WithCancel(ctx)
	w.e = &entry{viewer: &viewer.Viewer{User: uuid.New()}, target: target, ctx: inside, end: end, from: inside}
	w.e.up = &upstream{Container: &app.Container{Kernel: uuid.New(), Ports: ports}, session: target.Session, port: port}
	g := &Gateway{log: slog.New(slog.DiscardHandler), meter: newMeter(nil), base: ctx}
	g.modes = []mode{{domain: ".apps.test"}, {host: "paths.test"}}
	g.visit = func(context.Context, uuid.UUID, string) (moved, leave func()) {
		w.visits.Add(1)
		return func() {}, func() { w.visits.Add(-1) }
	}
	g.entries.m, g.starts.m = map[string]*entry{}, map[string]*start{}
	g.proxy = g.newProxy()
	w.g = g
	return w
}

// handler serves every request as a request of the entry to its app.
func (w *world) handler() http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		at, _, ok := w.g.locate(r)
		if !ok {
			http.Error(rw, "no app", http.StatusMisdirectedRequest)
			return
		}
		w.g.use(&recorder{ResponseWriter: rw}, r, at, w.e)
	})
}

// cleartext are the protocols without TLS.
func cleartext() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

func (w *world) request(t *testing.T, method, path string, body io.Reader, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = w.host
	for name, values := range header {
		r.Header[name] = values
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// Cookies of Berth and headers about proxies do not reach an app; all other headers do.
func TestCredentialsStayAtTheGateway(t *testing.T) {
	got := make(chan *http.Request, 4)
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
	w.request(t, http.MethodGet, "/lab?a=1;b=%20", nil, http.Header{
		"Cookie":           {"theirs=1; berth=secret; __Host-berth=secret; berth-app=secret", "__Host-berth-app=secret; berth-device=x; other=\"q\""},
		"Authorization":    {"Bearer berth_secret"},
		"X-Forwarded-Host": {"other.apps.test"}, "X-Forwarded-For": {"6.6.6.6"}, "X-Forwarded-Prefix": {"/evil"},
		"Forwarded": {"for=6.6.6.6"}, "X-Real-Ip": {"6.6.6.6"}, "X-Berth-Csrf": {"1"}, "X-Theirs": {"kept"},
	})
	r := <-got
	for name, values := range r.Header {
		for _, v := range values {
			if strings.Contains(v, "secret") || strings.Contains(v, "6.6.6.6") || strings.Contains(v, "other.apps") || strings.Contains(v, "evil") {
				t.Errorf("%s: %s reaches the app", name, v)
			}
		}
	}
	if c := r.Header.Values("Cookie"); strings.Join(c, "; ") != `theirs=1; other="q"` {
		t.Errorf("cookies of the app: %q", c)
	}
	if r.Host != w.host || r.URL.RawQuery != "a=1;b=%20" || r.Header.Get("X-Theirs") != "kept" || r.Header.Get("X-Forwarded-Host") != w.host || r.Header.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("host %s, query %s, header %v", r.Host, r.URL.RawQuery, r.Header)
	}
	w.request(t, http.MethodGet, "/", nil, http.Header{"Authorization": {"token of-the-app"}})
	if r := <-got; r.Header.Get("Authorization") != "token of-the-app" {
		t.Errorf("the app's own credential became %q", r.Header.Get("Authorization"))
	}
}

func TestAnswersOfAppsAreFiltered(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		h := rw.Header()
		for _, name := range refusedHeaders {
			h.Set(name, "x")
		}
		h.Add("Set-Cookie", "a=1; Domain=apps.test; Path=/; Secure")
		h.Add("Set-Cookie", "__Host-berth-app=forged; Path=/; Secure")
		h.Add("Set-Cookie", "berth=forged; Domain=test")
		h.Set("X-Theirs", "kept")
	}))
	resp := w.request(t, http.MethodGet, "/", nil, nil)
	for _, name := range refusedHeaders {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s passes", name)
		}
	}
	if c := resp.Header.Values("Set-Cookie"); len(c) != 1 || c[0] != "a=1; Path=/; Secure" || resp.Header.Get("X-Theirs") != "kept" {
		t.Errorf("cookies %q, header %v", c, resp.Header)
	}
	if c, ok := confine("a=1; Path=/", "/apps/x/"); !ok || c != "a=1; Path=/apps/x/" {
		t.Errorf("in path mode: %q", c)
	}
	if c, _ := confine("a=1; path=/apps/x/lab", "/apps/x/"); c != "a=1; Path=/apps/x/lab" {
		t.Errorf("in path mode, below the prefix: %q", c)
	}
}

// An app that switches protocols without a request for it cannot send raw bytes to the browser.
func TestUnrequestedSwitchOfProtocols(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: berth=forged\r\n\r\n")
				}
			}()
		}
	}()
	w := newWorldAt(t, l.Addr().(*net.TCPAddr).Port)
	resp := w.request(t, http.MethodGet, "/", nil, nil)
	if resp.StatusCode != http.StatusBadGateway {
		t.Errorf("answer %s", resp.Status)
	}
}

// A client that has sent everything still gets the answer of a program that reads to the end first.
func TestHalfCloseAfterAnUpgrade(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n")
		all, _ := io.ReadAll(in)
		_, _ = fmt.Fprintf(c, "%d bytes", len(all))
	}()
	w := newWorldAt(t, l.Addr().(*net.TCPAddr).Port)
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n", w.host)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	_, _ = c.Write(make([]byte, 100_000))
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(in); string(got) != "100000 bytes" || err != nil {
		t.Errorf("answer %q, %v", got, err)
	}
}

// A request with two lengths or with folded headers reaches the app as one request.
func TestSmuggledRequests(t *testing.T) {
	var seen atomic.Int64
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if r.URL.Path == "/smuggled" {
			t.Error("the app got a request inside of a request")
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	for name, raw := range map[string]string{
		"CL and TE":         "POST /a HTTP/1.1\r\nHost: %s\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"two lengths":       "POST /a HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nContent-Length: 40\r\nConnection: close\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"obscure encoding":  "POST /a HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
		"folded length":     "POST /a HTTP/1.1\r\nHost: %s\r\nX-A: b\r\n Content-Length: 0\r\nTransfer-Encoding:\r\n chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"bare line feeds":   "POST /a HTTP/1.1\nHost: %s\nContent-Length: 0\nConnection: close\n\nGET /smuggled HTTP/1.1\nHost: x\n\n",
		"space before name": "GET /a HTTP/1.1\r\nHost: %s\r\nX : y\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			before := seen.Load()
			if _, err := fmt.Fprintf(c, raw, w.host); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Logf("connection: %v", err)
			}
			if n := seen.Load() - before; n > 1 {
				t.Errorf("the app got %d requests", n)
			}
		})
	}
}

func TestEventsAndUploadsAreStreamed(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// Each line of the upload is answered before the next one is sent.
		_ = http.NewResponseController(rw).EnableFullDuplex()
		rw.Header().Set("Content-Type", "text/event-stream")
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(rw, "data: %s\n\n", lines.Text())
			_ = http.NewResponseController(rw).Flush()
		}
	}))
	reader, writer := io.Pipe()
	go func() { _, _ = io.WriteString(writer, "first\n") }()
	resp := w.request(t, http.MethodPost, "/", reader, nil)
	answer := bufio.NewReader(resp.Body)
	for _, line := range []string{"first", "second"} {
		if line == "second" {
			if _, err := io.WriteString(writer, "second\n"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := answer.ReadString('\n'); err != nil || got != "data: "+line+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := answer.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	writer.Close()
}

func socket(t *testing.T, w *world, options *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	options.Host = w.host
	c, _, err := websocket.Dial(t.Context(), w.url+"/socket", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func echo(t *testing.T, headers chan<- http.Header) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		c, err := websocket.Accept(rw, r, &websocket.AcceptOptions{Subprotocols: []string{"notes"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
}

func TestWebSocketKeepsItsHeaders(t *testing.T) {
	headers := make(chan http.Header, 1)
	w := newWorld(t, echo(t, headers))
	c := socket(t, w, &websocket.DialOptions{
		Subprotocols: []string{"notes"},
		HTTPHeader:   http.Header{"Origin": {"http://" + w.host}, "Cookie": {"theirs=1; berth-app=secret"}, "Authorization": {"token x"}, "User-Agent": {"test"}},
	})
	h := <-headers
	if c.Subprotocol() != "notes" || h.Get("Origin") != "http://"+w.host || h.Get("Cookie") != "theirs=1" || h.Get("Authorization") != "token x" || h.Get("User-Agent") != "test" {
		t.Errorf("protocol %q, header %v", c.Subprotocol(), h)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// When an entry ends, its open connections are closed, and its connection to the kernel is no
// longer counted.
func TestEndOfAnEntryClosesItsWebSockets(t *testing.T) {
	w := newWorld(t, echo(t, make(chan http.Header, 1)))
	c := socket(t, w, &websocket.DialOptions{})
	if w.visits.Load() != 1 {
		t.Errorf("%d connections count as use", w.visits.Load())
	}
	w.e.end()
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("the WebSocket stays open")
	}
	for end := time.Now().Add(time.Minute); w.visits.Load() != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection to the kernel stays open")
		}
	}
}

// gRPC reaches the app as HTTP/2 with its trailers.
func TestGRPCReachesTheApp(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "Grpc-Status")
		rw.Header().Set("Content-Type", "application/grpc")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%d %s", r.ProtoMajor, body)
		rw.Header().Set("Grpc-Status", "0")
	}))
	two := &http.Protocols{}
	two.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: two}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/x.Y/Z", strings.NewReader("call"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = w.host
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "2 call" || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%s, trailer %v, %v", body, resp.Trailer, err)
	}
}

// In path mode, an app that knows the prefix gets the whole path, and other apps get the path below
// it.
func TestPathMode(t *testing.T) {
	got := make(chan *http.Request, 1)
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Set-Cookie", "a=1; Path=/")
		got <- r
	}))
	w.host = "paths.test"
	prefix := app.PathPrefix + w.e.target.Label() + "/"
	for knows, path := range map[bool]string{true: prefix + "lab/a%20b%2Fc", false: "/lab/a%20b%2Fc"} {
		w.e.up.prefix = knows
		resp := w.request(t, http.MethodGet, prefix+"lab/a%20b%2Fc?x=1", nil, nil)
		r := <-got
		if r.RequestURI != path+"?x=1" || r.Header.Get("X-Forwarded-Prefix") != strings.TrimSuffix(prefix, "/") {
			t.Errorf("knows %v: %s with %q", knows, r.RequestURI, r.Header.Get("X-Forwarded-Prefix"))
		}
		if c := resp.Header.Get("Set-Cookie"); c != "a=1; Path="+prefix {
			t.Errorf("cookie %q", c)
		}
	}
}
