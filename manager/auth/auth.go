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
	loginLife  = 7 * 24 * time.Hour // absolute
	loginIdle  = 24 * time.Hour     // without a request and without an open connection
	touchEvery = time.Minute        // how exact "last seen" is
)

// Config are the parts a Service works with.
type Config struct {
	Client    *ent.Client
	Bus       *event.Bus
	Redis     redis.UniversalClient // nil: throttling, rates and replays are per process
	Passwords *password.Hasher
	Keys      *seal.Ring            // seals the secrets of keypairs
	Registry  prometheus.Registerer // nil: no metrics
	Logger    *slog.Logger

	// PublicURL is where browsers reach the page; "": what a request says.
	PublicURL string
	// TrustedProxies may say in X-Forwarded-For and X-Forwarded-Proto who asks.
	TrustedProxies []netip.Prefix
	// RecheckEvery is how long an open connection may outlive the rights it was
	// opened with when the event is lost; zero means three seconds.
	RecheckEvery time.Duration
}

// Service logs people in and out, makes and ends access tokens, and puts the
// viewer into the context of every request.
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

// New returns a Service. Run keeps its promises about revocation.
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

// Run ends what other managers revoked, looks for what no event told, and
// removes old logins, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.watchBus(ctx) })
	wg.Go(func() { s.expireLogins(ctx) })
	<-ctx.Done()
	return nil
}
