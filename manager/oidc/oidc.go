// Package oidc lets people log in with OpenID Connect: it keeps the identity
// providers, walks a browser through theirs, and finds or makes the user whom
// they vouch for. The manager mounts it.
package oidc

import (
	"log/slog"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/auth"
)

// Config are the parts a Service works with.
type Config struct {
	Client *ent.Client
	Keys   *seal.Ring
	Auth   *auth.Service
	Redis  redis.UniversalClient // nil: a login's state is single-use per process
	Logger *slog.Logger
}

// Service keeps identity providers and logs people in with them.
type Service struct {
	client  *ent.Client
	keys    *seal.Ring
	auth    *auth.Service
	log     *slog.Logger
	used    *used
	issuers *issuers
}

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{
		client: cfg.Client, keys: cfg.Keys, auth: cfg.Auth, log: cfg.Logger,
		used: newUsed(cfg.Redis, cfg.Logger), issuers: newIssuers(),
	}
}

// Register adds the routes. Like those of package auth they must not be wrapped
// in Authenticate.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /auth/oidc/{name}/start", s.start)
	mux.HandleFunc("GET /auth/oidc/{name}/callback", s.callback)
}
