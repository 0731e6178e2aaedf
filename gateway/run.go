package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/internal/discovery"
	"github.com/berthhq/berth/manager/app"
)

// Run serves until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.cfg.Stores.Close()
	defer g.serves.Wait()
	eg, ctx := errgroup.WithContext(ctx)
	// Requests to models can end after ctx has, and SSH clients are notified, so the tunnels to the
	// agents end later.
	late, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g.mu.Lock()
	g.base = ctx
	g.mu.Unlock()
	said, err := json.Marshal(g.announcement())
	if err != nil {
		return err
	}
	eg.Go(func() error { g.Bus.Run(late); return nil })
	eg.Go(func() error { return g.hub.Serve(late, g.cfg.Cluster) })
	eg.Go(func() error { return g.serveModels(late) })
	eg.Go(func() error { return g.runChats(ctx) })
	eg.Go(func() error { return g.Auth.Run(ctx) })
	eg.Go(func() error { g.Idle.Watch(ctx); return nil })
	eg.Go(func() error { g.watch(ctx); return nil })
	eg.Go(func() error {
		_ = discovery.Announce(ctx, g.etcd, app.GatewaysKey, g.id.String(), string(said))
		return nil
	})
	var served sync.WaitGroup
	serve := func(listeners ...net.Listener) {
		served.Add(1)
		eg.Go(func() error { defer served.Done(); return g.serveHTTP(ctx, late, listeners...) })
	}
	for _, l := range []net.Listener{g.cfg.HTTP, g.cfg.Paths} {
		if l != nil {
			serve(l)
		}
	}
	if len(g.cfg.PortListeners) > 0 {
		serve(g.cfg.PortListeners...)
	}
	for _, d := range g.services {
		served.Add(1)
		eg.Go(func() error { defer served.Done(); return d.Run(ctx) })
	}
	eg.Go(func() error { <-ctx.Done(); served.Wait(); stop(); return nil })
	if err := eg.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveHTTP serves listeners until ctx ends, and then waits for requests to models; late is the context of requests. It
// offers HTTP/2 with TLS, and without TLS to a proxy that supports it.
func (g *Gateway) serveHTTP(ctx, late context.Context, listeners ...net.Listener) error {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, Protocols: protocols,
		BaseContext: func(net.Listener) context.Context { return late },
	}
	serve := srv.Serve
	if g.cfg.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(g.cfg.Certificate, g.cfg.Key)
		if err != nil {
			return fmt.Errorf("serve apps: %w", err)
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	done := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { done <- serve(l) }()
	}
	select {
	case err := <-done:
		return fmt.Errorf("serve apps: %w", err)
	case <-ctx.Done():
	}
	wait := shutdownTime
	if g.models.Service != nil {
		wait = modelsGrace
	}
	grace, cancel := context.WithTimeout(late, wait)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // open streams would continue
	}
	for range listeners {
		<-done
	}
	return nil
}
