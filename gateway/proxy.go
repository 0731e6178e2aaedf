package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/manager/auth"
)

type (
	upstreamKey struct{}
	passageKey  struct{}
)

// passage is the state of one proxied request.
type passage struct {
	at      location
	e       *entry
	up      *upstream
	secure  bool
	upgrade string // the protocol that the client wants to upgrade to
}

func addressOf(ctx context.Context) netip.Addr { return auth.AddressFrom(ctx) }

// forward sends a request to the app and the answer back.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, at location, e *entry, up *upstream) {
	p := &passage{at: at, e: e, up: up, secure: at.mode.secure, upgrade: r.Header.Get("Upgrade")}
	ctx := context.WithValue(context.WithValue(r.Context(), upstreamKey{}, up), passageKey{}, p)
	// Without full duplex, the server would read the whole upload before it sends the first byte of
	// the answer.
	_ = http.NewResponseController(w).EnableFullDuplex()
	g.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// transports speak HTTP/1.1 to apps, and HTTP/2 for gRPC.
type transports struct {
	plain, grpc *http.Transport
	upgrade     upgrades
}

// RoundTrip implements http.RoundTripper.
func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.upgrade.RoundTrip(r)
	}
	if kind := r.Header.Get("Content-Type"); r.ProtoMajor == 2 && isGRPC(kind) {
		return t.grpc.RoundTrip(r)
	}
	return t.plain.RoundTrip(r)
}

// isGRPC reports whether a content type is that of gRPC, which needs HTTP/2. gRPC-web works over
// all versions of HTTP.
func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(kind, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

const (
	idleConns    = 32 // per app
	idleConnTime = 30 * time.Second
	// flushTime is how long an answer of known length can wait for its end, so that one system call
	// sends both. Answers of unknown length and events are sent at once.
	flushTime = 5 * time.Millisecond
)

func (g *Gateway) newProxy() *httputil.ReverseProxy {
	plain := &http.Transport{
		DialContext: g.dial, DisableCompression: true, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleConnTime, ForceAttemptHTTP2: false,
		MaxResponseHeaderBytes: 1 << 20, ExpectContinueTimeout: time.Second,
	}
	two := &http.Protocols{}
	two.SetUnencryptedHTTP2(true)
	grpc := &http.Transport{DialContext: g.dial, DisableCompression: true, IdleConnTimeout: idleConnTime, Protocols: two}
	return &httputil.ReverseProxy{
		Rewrite: g.rewrite, Transport: transports{plain, grpc, upgrades{g.dial}}, FlushInterval: flushTime, BufferPool: buffers{},
		ModifyResponse: filter, ErrorHandler: g.broken, ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
}

// rewrite turns the request of a browser into the request to the app: without credentials of Berth
// and without the client's headers about proxies.
func (g *Gateway) rewrite(pr *httputil.ProxyRequest) {
	p := pr.In.Context().Value(passageKey{}).(*passage)
	out := pr.Out
	out.URL.Scheme, out.URL.Host = "http", p.up.host()
	out.Host = pr.In.Host
	// The query is forwarded unchanged, because an app may interpret ";" differently.
	out.URL.RawQuery = pr.In.URL.RawQuery
	if p.at.prefix != "/" && !p.up.prefix {
		out.URL.Path = p.at.path
		out.URL.RawPath = below(pr.In.URL.EscapedPath(), p.at.prefix)
	}
	h := out.Header
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Berth-") {
			delete(h, name)
		}
	}
	h.Del("Forwarded")
	h.Del("X-Real-Ip")
	if strings.EqualFold(p.upgrade, "h2c") { // requests within HTTP/2 would not be filtered
		h.Del("Upgrade")
		h.Del("Connection")
	}
	h.Del("Http2-Settings")
	if secret, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && auth.IsToken(secret) || signature.Signed(pr.In.Header) {
		for _, name := range []string{"Authorization", "Signature", "Signature-Input"} {
			h.Del(name)
		}
	}
	stripCookies(h)
	h.Set("X-Forwarded-Host", pr.In.Host)
	h.Set("X-Forwarded-Proto", strings.TrimSuffix(p.at.origin(pr.In), "://"+pr.In.Host))
	if a := addressOf(pr.In.Context()); a.IsValid() {
		h.Set("X-Forwarded-For", a.String())
	}
	if p.at.prefix != "/" {
		h.Set("X-Forwarded-Prefix", strings.TrimSuffix(p.at.prefix, "/"))
	}
}

// below removes a prefix without its final slash.
func below(path, prefix string) string {
	return "/" + strings.TrimPrefix(path, prefix)
}

// ours reports whether a cookie belongs to Berth: to the page or to the entry of an app.
func ours(name string) bool {
	return strings.HasPrefix(name, "__Host-berth") || strings.HasPrefix(name, "__Host-Http-berth") || name == "berth" || strings.HasPrefix(name, "berth-")
}

// stripCookies removes the cookies of Berth.
func stripCookies(h http.Header) {
	lines := h.Values("Cookie")
	h.Del("Cookie")
	for _, line := range lines {
		var kept []string
		for part := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
			if part = strings.TrimSpace(part); part != "" && !ours(strings.TrimSpace(name)) {
				kept = append(kept, part)
			}
		}
		if len(kept) > 0 {
			h.Add("Cookie", strings.Join(kept, "; "))
		}
	}
}

// refusedHeaders are headers of answers that affect other hosts, the port, or the data of the
// browser, and not only the app.
var refusedHeaders = []string{"Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "Public-Key-Pins", "Report-To", "Nel", "Origin-Agent-Cluster"}

// errUnrequestedUpgrade is the error of an app that switches protocols without a request for it.
var errUnrequestedUpgrade = errors.New("the app answered 101 to a request without an upgrade")

// filter removes headers that an app must not set from an answer.
func filter(resp *http.Response) error {
	p := resp.Request.Context().Value(passageKey{}).(*passage)
	if resp.StatusCode == http.StatusSwitchingProtocols && (p.upgrade == "" || resp.Header.Get("Upgrade") == "") {
		return errUnrequestedUpgrade
	}
	for _, name := range refusedHeaders {
		resp.Header.Del(name)
	}
	if p.at.port > 0 && !p.secure { // see greet
		resp.Header.Set("Cache-Control", "no-store")
	}
	cookies := resp.Header.Values("Set-Cookie")
	resp.Header.Del("Set-Cookie")
	for _, c := range cookies {
		if c, ok := confine(c, p.at.prefix); ok {
			resp.Header.Add("Set-Cookie", c)
		}
	}
	return nil
}

// confine makes a cookie of an app valid for its host only, and below its prefix. It reports false
// for a cookie with a name of Berth's cookies.
func confine(cookie, prefix string) (string, bool) {
	parts := strings.Split(cookie, ";")
	name, _, _ := strings.Cut(parts[0], "=")
	if ours(strings.TrimSpace(name)) {
		return "", false
	}
	kept := parts[:1]
	path := ""
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case strings.EqualFold(strings.TrimSpace(key), "domain"):
			continue
		case strings.EqualFold(strings.TrimSpace(key), "path"):
			path = strings.TrimSpace(value)
			if prefix != "/" {
				continue
			}
		}
		kept = append(kept, part)
	}
	if prefix != "/" {
		if !strings.HasPrefix(path, prefix) {
			path = prefix
		}
		kept = append(kept, " Path="+path)
	}
	return strings.Join(kept, ";"), true
}

// broken answers if the app cannot be reached or violates the protocol.
func (g *Gateway) broken(w http.ResponseWriter, r *http.Request, err error) {
	p := r.Context().Value(passageKey{}).(*passage)
	if r.Context().Err() != nil {
		return // the client has disconnected, or its entry has ended
	}
	p.e.setUpstream(nil)
	if portstream.Refused(err) && (r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0) {
		g.pass(w, r, p.at, p.e) // the app has ended: start it again
		return
	}
	g.log.DebugContext(r.Context(), "forward request", "session", p.up.session, "error", err)
	g.meter.errors.Inc()
	g.unusable(w, r, problem.Unavailable("the app closed the connection or cannot be reached").WithStatus(http.StatusBadGateway).RetryAfter(time.Second).Because(err))
}

// buffers are the copy buffers of all requests.
type buffers struct{}

const bufferSize = 32 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pool.Get().(*[bufferSize]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }

// recorder remembers the status, and supports flushing and hijacking.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter. Of an informational answer, only link headers pass,
// because such answers are not filtered.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		for name := range r.Header() {
			if name != "Link" {
				r.Header().Del(name)
			}
		}
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush implements http.Flusher.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, both, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err != nil {
		return c, both, err
	}
	// The writer stays as long as the connection, and only writes the header of the answer.
	both.Writer = bufio.NewWriterSize(c, smallBuffer)
	return upgraded{c}, both, nil
}

// upgraded is the connection of a client after an upgrade, such as a WebSocket. io.Copy would use
// two buffers of 32 KiB for it; these buffers are small while little data moves.
type upgraded struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (u upgraded) ReadFrom(app io.Reader) (int64, error) { return pump(u.Conn, app) }

// WriteTo implements io.WriterTo.
func (u upgraded) WriteTo(app io.Writer) (int64, error) { return pump(app, u.Conn) }

// CloseWrite closes the direction to the client.
func (u upgraded) CloseWrite() error {
	return closeWrite(u.Conn)
}

const smallBuffer = 512

// pump copies until the end of the data. Its buffer grows with the throughput.
func pump(to io.Writer, from io.Reader) (all int64, err error) {
	buf := make([]byte, smallBuffer)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return all, err
			}
			all += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case n == len(buf) && n < bufferSize:
			buf = make([]byte, bufferSize)
		case n < smallBuffer && len(buf) == bufferSize: // slow again
			buf = make([]byte, smallBuffer)
		}
	}
}

// ReadFrom lets the kernel copy data where it can.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) { return io.Copy(r.ResponseWriter, src) }
