// Package opsserver serves operators and their monitoring, on an address of its own: /metrics,
// /healthz and /readyz. cmd/berthd runs it for every role.
package opsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is a dependency without which the process is not ready.
type Check struct {
	Name string
	// An Optional check is shown, and its failure does not make the process unready.
	Optional bool
	// Probe returns the reason why the dependency does not work. It ends with its context.
	Probe func(context.Context) error
	// Word returns the text for an error in the answer; nil: "unavailable".
	Word func(error) string
}

const (
	// probeTime limits one check. All checks run at the same time.
	probeTime = 2 * time.Second
	// scrapeTime limits one answer with metrics. Prometheus waits 10 s.
	scrapeTime = 5 * time.Second
	// maxScrapes limits the concurrent answers with metrics.
	maxScrapes = 4
)

// Server is the HTTP server for monitoring. New creates one.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux
	log      *slog.Logger
}

// New returns a server for a listener. Without a gatherer, it serves no metrics.
func New(listener net.Listener, metrics prometheus.Gatherer, checks []Check, log *slog.Logger) *Server {
	s := &Server{listener: listener, mux: http.NewServeMux(), log: log}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.Handle("GET /readyz", Ready(checks))
	if metrics != nil {
		s.mux.Handle("GET /metrics", Scrape(metrics))
	}
	return s
}

// Scrape answers with metrics.
func Scrape(metrics prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		Timeout: scrapeTime, MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError,
	})
}

// Handler returns the routes, for a caller with a listener of its own.
func (s *Server) Handler() http.Handler { return s.mux }

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 2 * scrapeTime, IdleTimeout: time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	s.log.Info("metrics and health are served", "address", s.listener.Addr().String())
	if err := srv.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics and health: %w", err)
	}
	return nil
}

// Ready answers with a line for every check, and with status 503 while a required one fails. It
// logs nothing, because it is called every few seconds; a Watcher logs failures.
func Ready(checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		errs := make([]error, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() { errs[i] = probe(r.Context(), c) })
		}
		wg.Wait()
		status := http.StatusOK
		for i, c := range checks {
			if errs[i] != nil && !c.Optional {
				status = http.StatusServiceUnavailable
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		for i, c := range checks {
			fmt.Fprintf(w, "%s %s\n", c.Name, c.state(errs[i]))
		}
	})
}

func (c Check) state(err error) string {
	switch {
	case err == nil:
		return "ok"
	case c.Word != nil:
		return c.Word(err)
	}
	return "unavailable"
}

// probe runs one check. It does not wait for a check that ignores the end of its context.
func probe(ctx context.Context, c Check) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Probe(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
