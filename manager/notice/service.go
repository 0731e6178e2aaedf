// Package notice notifies people of events: in the page, by mail, and by webhooks. The leader reads events from the tables that
// have them (collect.go) and conditions from the state of the cluster (condition.go), stores a row for each person (post.go), and
// sends deliveries until they succeed or have failed for a day (deliver.go). docs/adr/0054-notices-are-read-from-events.md says why.
package notice

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/manager/store"
)

// Limits.
const (
	maxChannels = 10 // of a person, and of the cluster
	maxName     = 64 // characters
	maxURL      = 2 << 10
	maxMarked   = 500
	maxUnread   = 1000

	sendTimeout = 10 * time.Second
	expiry      = 24 * time.Hour   // of a delivery
	failingDays = 5                // then a channel is disabled
	lease       = 2 * time.Minute  // of a channel or a mail that is being sent: longer than any attempt
	digest      = time.Minute      // notices within this time are one mail
	mailsHourly = 20               // of a person; later notices wait and are one mail
	maxDigest   = 100              // notices in one mail
	minBackoff  = 10 * time.Second // of a channel that fails, doubled by each failure
	maxBackoff  = 10 * time.Minute // so that a receiver that is back gets its deliveries soon
	collectTick = 2 * time.Second  // between looks at new events
	rereadTick  = 10 * time.Second // between looks at the events of transactions that were open
	lateness    = 30 * time.Second // by which the clocks of managers can differ
	watchTick   = 15 * time.Second // between looks at conditions
	sendTick    = time.Second      // between looks at deliveries
	atOnce      = 16               // channels that are sent to at the same time
)

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Keys   *seal.Ring
	Egress *egress.Policy // hosts that channels can reach in addition to the Internet
	Mail   *mail.Sender   // nil: no mail
	// PublicURL is the address of the page in links; "": texts have no links.
	PublicURL string
	// Certificates returns the names of the cluster's certificates and when they expire.
	Certificates func() map[string]time.Time
	Now          func() time.Time // nil: clock.Now
	Registry     prometheus.Registerer
	Logger       *slog.Logger
}

// Service notifies people.
type Service struct {
	Config
	people, operators *http.Client // to channels of people, and to those of the cluster
	meter             *meter
	reread, lateness  time.Duration
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = clock.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{Config: cfg, meter: newMeter(cfg.Registry), reread: rereadTick, lateness: lateness}
	s.people, s.operators = httpClient(cfg.Egress, egress.Public), httpClient(cfg.Egress, egress.Private)
	return s
}

func httpClient(p *egress.Policy, reach egress.Reach) *http.Client {
	t := p.Transport(reach)
	t.ResponseHeaderTimeout = sendTimeout
	return &http.Client{Transport: t, Timeout: sendTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Lead collects events and sends deliveries until ctx ends. Only the leader runs it; a second leader for a moment does no harm,
// because marks, leases and locks are in the database.
func (s *Service) Lead(ctx context.Context) {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	var all sync.WaitGroup
	defer all.Wait()
	c := &collector{Service: s}
	woken := s.Bus.Subscribe(ctx, event.Session, event.Deployment, event.Share)
	all.Go(func() { s.loop(ctx, "collect events", collectTick, woken, c.Collect) })
	all.Go(func() { s.loop(ctx, "look at conditions", watchTick, nil, s.Watch) })
	all.Go(func() { s.loop(ctx, "send to channels", sendTick, nil, s.Deliver) })
	all.Go(func() { s.loop(ctx, "send mail", sendTick, nil, s.SendMail) })
}

// loop calls f at intervals, and soon after an event.
func (s *Service) loop(ctx context.Context, what string, every time.Duration, woken <-chan event.Event, f func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "notices: "+what, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case _, open := <-woken:
			if !open {
				return
			}
			_ = clock.Pause(ctx, soon) // for other events of the same moment
			drain(woken)
		}
	}
}

// soon limits how often events cause a look.
const soon = 500 * time.Millisecond

func drain(c <-chan event.Event) {
	for {
		select {
		case _, open := <-c:
			if !open {
				return
			}
		default:
			return
		}
	}
}

// Collector returns what Lead collects events with, for tests.
func (s *Service) Collector() interface{ Collect(context.Context) error } {
	return &collector{Service: s}
}
