// Package transfer is the HTTP side of a storage proxy: resumable uploads by
// the tus protocol, downloads and archives, each allowed by a ticket that a
// manager signed. It moves bytes between requests and package volume.
package transfer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/filehttp"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// Config of the HTTP side.
type Config struct {
	Volumes    *volume.Set
	Tickets    *ticket.Verifier
	Origins    []string // origins whose pages can send requests; "*" means all
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Server is an http.Handler. New creates one.
type Server struct {
	cfg     Config
	log     *slog.Logger
	mux     *http.ServeMux
	metrics *metrics
	locks   locks
	gate    gate
	mounts  []mount
	// conditional is held while a file is published under a condition.
	conditional sync.Mutex
}

// New returns a server. Run sweeps abandoned uploads.
func New(cfg Config) (*Server, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("transfer metrics: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Logger, mux: http.NewServeMux(), metrics: m}
	s.handle("POST /uploads", "upload", s.create)
	s.handle("POST /uploads/{$}", "upload", s.create)
	s.handle("HEAD /uploads/{id}", "upload", s.offset)
	s.handle("PATCH /uploads/{id}", "upload", s.append)
	s.handle("DELETE /uploads/{id}", "upload", s.terminate)
	s.handle("GET /download", "download", s.download) // also serves HEAD
	s.handle("GET /archive", "archive", s.archive)
	s.handle("OPTIONS /", "options", s.options)
	s.handle("/", "unknown", s.unknown)
	return s, nil
}

// unknown rejects requests that no other handler serves: an unknown resource, or a method that
// the resource does not have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return notFound("no such resource: %s %s", r.Method, r.URL.Path)
	}
	list := strings.Join(append(allowed, http.MethodOptions), ", ")
	w.Header().Set("Allow", list)
	return problem.Invalid("", "method %s is not one of %s", r.Method, list).WithStatus(http.StatusMethodNotAllowed)
}

// handle installs a handler that returns its error.
func (s *Server) handle(pattern, kind string, h func(http.ResponseWriter, *http.Request) error) {
	s.mux.HandleFunc(pattern, s.counted(kind, h))
}

func (s *Server) counted(kind string, h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.kind = kind
		open := s.metrics.open.WithLabelValues(kind)
		open.Inc()
		defer open.Dec()
		err := filehttp.CheckRanges(r)
		if err == nil {
			err = h(x, r)
		}
		if err != nil {
			s.fail(x, r, err)
		}
	}
}

// mount is a subtree that another handler serves.
type mount struct {
	path  string
	serve http.HandlerFunc
}

// Mount serves a path and everything below it with a handler that does not use tickets.
// Requests are counted and logged as the kind. Mount must be called before the first request.
func (s *Server) Mount(path, kind string, h func(http.ResponseWriter, *http.Request) error) {
	s.mounts = append(s.mounts, mount{path, s.counted(kind, h)})
}

// route returns the handler of a path.
func (s *Server) route(path string) http.Handler {
	for _, m := range s.mounts {
		if path == m.path || strings.HasPrefix(path, m.path+"/") {
			return m.serve
		}
	}
	return s.mux
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := requestid.Choose(r.Header.Get(requestid.Header))
	ctx, cancel := context.WithCancel(requestid.With(r.Context(), id))
	defer cancel()
	r = r.WithContext(ctx)
	x := &exchange{ResponseWriter: w, request: id, proto: r.ProtoMajor, began: time.Now(), deadline: newDeadlines(w, cancel)}
	if m := r.Header.Get("X-HTTP-Method-Override"); m != "" && r.Method == http.MethodPost {
		r.Method = m // part of tus, for clients behind old proxies
	}
	h := w.Header()
	h.Set(requestid.Header, id)
	h.Set("X-Content-Type-Options", "nosniff")
	s.cors(h, r)
	// Deferred, since a handler can abort the connection with a panic.
	defer s.ended(x, r)
	x.deadline.begin()
	defer x.deadline.extendWrite() // for bytes that are still in a buffer
	defer s.gate.leave(x)
	s.route(r.URL.Path).ServeHTTP(x, r)
}

// ended logs one line. It never logs the query, which can contain a ticket.
func (s *Server) ended(x *exchange, r *http.Request) {
	s.metrics.sent.Add(float64(x.sent))
	s.metrics.received.Add(float64(x.received))
	level := slog.LevelInfo
	if x.status >= 500 {
		level = slog.LevelError
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", x.kind), slog.Int("status", x.status),
		slog.Int64("sent", x.sent), slog.Int64("received", x.received),
		slog.Duration("took", time.Since(x.began)),
	}
	if x.claims.ID != "" {
		attrs = append(attrs, slog.String("user", x.claims.User), slog.String("volume", x.claims.Volume),
			slog.String("folder", x.claims.Folder))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.err.Error()))
	}
	s.log.LogAttrs(r.Context(), level, "http", attrs...)
}

var exposed = strings.Join([]string{
	"Location", "Upload-Offset", "Upload-Length", "Upload-Expires", "Tus-Version", "Tus-Resumable",
	"Tus-Extension", "Tus-Checksum-Algorithm", "X-Request-Id", "ETag", "Content-Disposition", "Content-Range",
}, ", ")

// cors allows the pages of the configured origins to use the server. Browsers do not send
// tickets by themselves, so credentials need no permission.
func (s *Server) cors(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if len(s.cfg.Origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if origin == "" || !slices.Contains(s.cfg.Origins, origin) && !slices.Contains(s.cfg.Origins, "*") {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposed)
	if r.Method != http.MethodOptions {
		return
	}
	h.Set("Access-Control-Allow-Methods", "POST, HEAD, PATCH, DELETE, GET, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Tus-Resumable, Upload-Length, "+
		"Upload-Offset, Upload-Metadata, Upload-Checksum, X-Request-Id, X-HTTP-Method-Override, "+
		"Range, If-Range, If-Match, If-None-Match")
	h.Set("Access-Control-Max-Age", "86400")
}

// claims checks the request's ticket and returns its claims. Uploads carry the ticket in a
// header only.
func (s *Server) claims(w http.ResponseWriter, r *http.Request, operation string) (ticket.Claims, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer && operation != ticket.Upload {
		token = r.URL.Query().Get("ticket")
	}
	c, err := s.cfg.Tickets.Verify(token, operation)
	if err != nil {
		return c, err
	}
	x := w.(*exchange)
	x.claims = c
	return c, s.gate.enter(x)
}

// folder opens the folder that a ticket is for.
func (s *Server) folder(c ticket.Claims) (*volume.Folder, error) {
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return nil, err
	}
	return v.Folder(c.Scope, c.Folder)
}

// sweepEvery is the pause between two sweeps of abandoned uploads.
const sweepEvery = 15 * time.Minute

// Run sweeps abandoned uploads until the context ends.
func (s *Server) Run(ctx context.Context) error {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		s.sweep(ctx, time.Now())
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// exchange is the ResponseWriter of one request and the data for its log line.
type exchange struct {
	http.ResponseWriter
	request  string
	kind     string
	proto    int // major version of HTTP
	began    time.Time
	claims   ticket.Claims
	deadline *deadlines
	status   int
	sent     int64
	received int64
	err      error
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	if x.proto == 1 && x.deadline.spent() { // HTTP/2 has streams, which end with the request
		x.Header().Set("Connection", "close")
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.deadline.extendWrite()
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, err
}

// ReadFrom lets io.Copy use sendfile(2).
func (x *exchange) ReadFrom(src io.Reader) (int64, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	part, bounded := src.(*io.LimitedReader)
	if !bounded {
		part = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	for sum := int64(0); ; {
		x.deadline.extendWrite()
		// net/http uses sendfile for one level of LimitedReader only, so there must not be two.
		n, err := io.Copy(x.ResponseWriter, &io.LimitedReader{R: part.R, N: min(piece, part.N)})
		part.N, sum, x.sent = part.N-n, sum+n, x.sent+n
		if err != nil || n < piece || part.N == 0 {
			return sum, err
		}
	}
}

// Unwrap implements the convention of http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

type metrics struct {
	received prometheus.Counter
	sent     prometheus.Counter
	open     *prometheus.GaugeVec
	errors   *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_storage_received_bytes_total", Help: "Bytes of uploads received.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_storage_sent_bytes_total", Help: "Bytes of downloads and archives sent.",
		}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_storage_open_transfers", Help: "Requests under way.",
		}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_storage_errors_total", Help: "Requests that failed, by error code.",
		}, []string{"kind", "code"}),
	}
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.received, m.sent, m.open, m.errors} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
