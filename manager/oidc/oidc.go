// Package oidc is the login with OpenID Connect: it stores the identity providers, redirects
// browsers to their issuers, and finds or creates the users that they confirm. The manager
// mounts it.
package oidc

import (
	"log/slog"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/auth"
)

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Keys   *seal.Ring
	Auth   *auth.Service
	Redis  redis.UniversalClient // nil: the state of a login is single-use per process only
	Logger *slog.Logger
}

// Service stores identity providers and logs users in with them.
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

// Register adds the routes. Like those of package auth, they must not be wrapped in
// Authenticate.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /auth/oidc/{name}/start", s.start)
	mux.HandleFunc("GET /auth/oidc/{name}/callback", s.callback)
}
