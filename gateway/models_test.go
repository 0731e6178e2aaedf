package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/auth"
)

// withModels returns a gateway for apps in all modes, and for models at models.test, whose models are served by a handler.
func withModels(t *testing.T, handler http.Handler) *Gateway {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	bus := event.New(nil, log)
	g := &Gateway{log: log, meter: newMeter(nil), base: t.Context()}
	g.Parts = Parts{Auth: auth.New(auth.Config{Bus: bus, Logger: log}), Bus: bus, Logger: log}
	g.modes = []mode{{domain: ".apps.test"}, {host: "paths.test:8080"}, {host: "ports.test", ports: &app.Ports{URL: "http://ports.test", First: 20000, Last: 20009}}}
	g.appAt = func(context.Context, int) (app.Target, bool, error) { return app.Target{}, false, nil }
	g.cfg.ModelsURL = "https://models.test/v1"
	var err error
	if g.models, err = g.newModels(&manager.Stores{}); err != nil {
		t.Fatal(err)
	}
	g.models.handler = handler
	return g
}

// Models are at their host, and beside the page; the hosts of apps have none.
func TestHostsOfModels(t *testing.T) {
	t.Parallel()
	g := withModels(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "models") }))
	page := g.Before(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }))
	for _, c := range []struct {
		host, path      string
		alone, withPage string // "": an answer about apps
	}{
		{"models.test", "/v1/models", "models", "models"},
		{"MODELS.test", "/", "models", "page"},
		{"berth.test", "/v1/models", "models", "models"},
		{"berth.test", "/deployments/m/v1/models", "models", "models"},
		{"berth.test", "/deployments/m", "", "page"},
		{"berth.test", "/graphql", "", "page"},
		{"x.apps.test", "/v1/models", "", ""},
		{"X.APPS.TEST:443", "/v1/models", "", ""},
		{"paths.test:8080", "/v1/models", "", "page"},
		{"ports.test:20001", "/v1/models", "", "page"},
		{"ports.test", "/v1/models", "", "page"},
	} {
		for i, handler := range []http.Handler{g, page} {
			want := []string{c.alone, c.withPage}[i]
			rec := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, c.path, nil)
			r.Host = c.host
			handler.ServeHTTP(rec, r)
			got := rec.Body.String()
			if got != "models" && got != "page" {
				got = ""
			}
			if got != want {
				t.Errorf("%s%s: %q, want %q", c.host, c.path, got, want)
			}
		}
	}
	for _, address := range []string{"models.test/v1", "https://models.test", "https://x.apps.test/v1", "https://paths.test:8080/v1", "https://ports.test/v1", "https://models.test/v1?x=y"} {
		g.cfg.ModelsURL = address
		if _, err := g.newModels(&manager.Stores{}); err == nil {
			t.Errorf("%q is accepted as the URL of models", address)
		}
	}
}

// A gateway that stops lets streams of models end.
func TestStreamsEndBeforeTheGateway(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	g := withModels(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
			fmt.Fprint(w, "last")
		case <-r.Context().Done():
		}
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.serveHTTP(ctx, t.Context(), l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	cancel()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break // no new connection
		}
		c.Close()
		if time.Now().After(until) {
			t.Fatal("the gateway still accepts connections")
		}
	}
	close(end)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "last" {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
