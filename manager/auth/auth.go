// Package auth authenticates requests: passwords and login cookies of browsers, access tokens and
// keypairs of programs. It revokes credentials together with the connections that use them, and
// limits failed attempts.
package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/identity/password"
)

const (
	loginLife  = 7 * 24 * time.Hour // maximum lifetime
	loginIdle  = 24 * time.Hour     // maximum time without a request and without an open connection
	touchEvery = time.Minute        // precision of "last seen"
)

// Config has the dependencies of a Service.
type Config struct {
	Client    *ent.Client
	Bus       *event.Bus
	Redis     redis.UniversalClient // nil: throttling, rate limits and replay protection are per process
	Passwords *password.Hasher
	Keys      *seal.Ring            // encrypts the secrets of keypairs
	Registry  prometheus.Registerer // nil: no metrics
	Logger    *slog.Logger

	// PublicURL is the URL of the page for browsers; "": derived from the request.
	PublicURL string
	// TrustedProxies are trusted to set X-Forwarded-For and X-Forwarded-Proto.
	TrustedProxies []netip.Prefix
	// RecheckEvery is how long an open connection can outlive a revoked permission if the
	// event is lost; zero means three seconds.
	RecheckEvery time.Duration
}

// Service logs users in and out, creates and revokes access tokens, and adds the viewer to the
// context of every request.
type Service struct {
	client    *ent.Client
	bus       *event.Bus
	passwords *password.Hasher
	log       *slog.Logger
	keys      *seal.Ring
	throttle  *throttle
	nonces    *nonces
	rates     *rates
	watchers  *watchers
	trusted   []netip.Prefix
	recheck   time.Duration
	public    string
	refusals  *prometheus.CounterVec
}

// New returns a Service. Revocations take effect only while Run runs.
func New(cfg Config) *Service {
	if cfg.RecheckEvery == 0 {
		cfg.RecheckEvery = 3 * time.Second
	}
	return &Service{
		client: cfg.Client, bus: cfg.Bus, passwords: cfg.Passwords, log: cfg.Logger,
		throttle: newThrottle(cfg.Redis, cfg.Logger),
		keys:     cfg.Keys,
		nonces:   &nonces{redis: cfg.Redis, warn: cfg.Logger.WarnContext},
		rates:    &rates{redis: cfg.Redis, warn: cfg.Logger.WarnContext},
		watchers: newWatchers(),
		trusted:  cfg.TrustedProxies,
		recheck:  cfg.RecheckEvery,
		public:   cfg.PublicURL,
		refusals: newRefusals(cfg.Registry),
	}
}

// Run closes connections with credentials that other managers revoked, checks for lost events,
// and deletes expired logins, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.watchBus(ctx) })
	wg.Go(func() { s.expireLogins(ctx) })
	<-ctx.Done()
	return nil
}
