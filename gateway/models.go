package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berthhq/berth/gateway/chatting"
	"github.com/berthhq/berth/gateway/serving"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/chat/live"
)

// modelsGrace is the time that requests to models have to end when a gateway stops.
const modelsGrace = 30 * time.Second

// models serves models at a host of their own, or beside the apps or the page. Its zero value serves none.
type models struct {
	*serving.Service
	chats   *chatting.Service
	host    string // of ModelsURL, with its port
	handler http.Handler
}

// newModels returns the part of a gateway that serves models.
func (g *Gateway) newModels(s *manager.Stores) (models, error) {
	if g.cfg.ModelsURL == "" {
		return models{}, nil
	}
	u, err := url.Parse(g.cfg.ModelsURL)
	if err != nil || u.Host == "" || u.RawQuery != "" || !strings.HasSuffix(u.Path, "/v1") {
		return models{}, fmt.Errorf("the URL of models %q does not have the form https://models.example.org/v1", g.cfg.ModelsURL)
	}
	m := models{host: strings.ToLower(u.Host)}
	if g.ofApps(m.host) {
		return models{}, fmt.Errorf("the URL of models %q has a host of apps", g.cfg.ModelsURL)
	}
	m.Service = serving.New(serving.Config{
		Client: s.Client, Bus: g.Bus, Redis: s.Redis, Users: g.Auth, Agents: g.Agents, Gateway: g.id.String(), Zone: g.cfg.Zone, Registry: g.cfg.registerer(), Logger: g.log,
	})
	reach, err := egress.Parse(g.cfg.ChatNetworks)
	if err != nil {
		return models{}, fmt.Errorf("networks of the endpoints of chats: %w", err)
	}
	m.chats = chatting.New(chatting.Config{
		Client: s.Client, Bus: g.Bus, Live: live.Store{Redis: s.Redis}, Keys: s.Keys, Models: m.Service, Users: g.Auth, Egress: reach,
		Roots: g.cfg.ChatRoots, Gateway: g.id, Registry: g.cfg.registerer(), Logger: g.log,
	})
	m.handler = requestid.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.ServeHTTP(w, g.Auth.Addressed(r)) }))
	return m, nil
}

// ofModels reports whether a request is one for models: at the host of models, or with the path of one of their APIs at a host
// that is not one of apps.
func (g *Gateway) ofModels(r *http.Request, all bool) bool {
	if g.models.Service == nil || g.ofApps(r.Host) {
		return false
	}
	return all && strings.EqualFold(r.Host, g.models.host) || serving.Own(r.URL.Path)
}

// ofApps reports whether a host is one of apps, in any mode.
func (g *Gateway) ofApps(host string) bool {
	for _, m := range g.modes {
		switch {
		case m.domain != "":
			if m.owns(host) {
				return true
			}
		case strings.EqualFold(hostname(host), hostname(m.host)) && (m.ports != nil || strings.EqualFold(host, m.host)):
			return true
		}
	}
	return false
}

// serveModels runs what serving models needs until ctx ends.
func (g *Gateway) serveModels(ctx context.Context) error {
	if g.models.Service == nil {
		return nil
	}
	return g.models.Run(ctx)
}

// runChats runs the answers of chats until ctx ends.
func (g *Gateway) runChats(ctx context.Context) error {
	if g.models.Service == nil {
		return nil
	}
	return g.models.chats.Run(ctx)
}
