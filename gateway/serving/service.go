package serving

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/store"
)

// Users reads what users can do at this time; none for a user who is not active.
type Users interface {
	Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
}

// Agents reaches the worker machines.
type Agents interface {
	Streams(agent string) (portstream.Opener, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Redis  redis.UniversalClient
	Users  Users
	Agents Agents
	// Gateway names this gateway in reports about load.
	Gateway string
	// Zone is the one whose replicas it prefers; "": none.
	Zone     string
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// Service serves models. It implements inference.Models.
type Service struct {
	Config
	router    *inference.Router
	keys      keys
	strangers strangers
	names     names
	limits    limits
	usage     usage
	prompts   prompts
	fleet     fleet
	reads     chan struct{} // limits the reads of requests from the database
	places    store.Limit
	bodies    bodies
	meter     *meter

	mu   sync.Mutex
	base context.Context // of Run: connections to engines end with it
}

// Times and limits.
const (
	// readTime limits the reads from the database for one request.
	readTime = 5 * time.Second
	// maxReads is the number of reads of requests at a time. A gateway has few connections to the database.
	maxReads = 3
	// refreshEvery is the time between two reads of the replicas that no event announced.
	refreshEvery = 3 * time.Second
	// reportEvery is the time between two reports about load. Managers ignore a report after 5 s.
	reportEvery = time.Second
	// usedFor is the time after which a deployment without requests is forgotten.
	usedFor = 10 * time.Minute
	// settleTime limits what is stored at the end.
	settleTime = 5 * time.Second
)

// New returns a Service. Run makes it serve.
func New(cfg Config) *Service {
	s := &Service{Config: cfg, reads: make(chan struct{}, maxReads), meter: newMeter(cfg.Registry), base: context.Background()}
	s.keys.byHash = map[hash]*holder{}
	s.limits.redis = cfg.Redis
	s.usage.init(cfg.Client, &s.limits, cfg.Logger)
	s.prompts.init(cfg.Client, s.meter, cfg.Logger)
	s.fleet.init(s, &load.Store{Redis: cfg.Redis})
	s.router = inference.New(inference.Config{Models: s})
	return s
}

// Run keeps the replicas, keys and reports current until ctx ends, and then stores what is left to store.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.base = ctx
	s.mu.Unlock()
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){s.watch, s.fleet.report, s.usage.run, s.prompts.run} {
		loops.Go(func() { loop(ctx) })
	}
	loops.Wait()
	return nil
}

// watch reads deployments and keys again after events, and otherwise every few seconds.
func (s *Service) watch(ctx context.Context) {
	events := s.Bus.Subscribe(ctx, event.Deployment, event.Login)
	replicas, credentials := time.NewTicker(refreshEvery), time.NewTicker(recheckEvery)
	defer replicas.Stop()
	defer credentials.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			switch {
			case !ok:
				return
			case e.Topic == event.Lagged:
				s.recheck(ctx, uuid.Nil)
				s.forget(uuid.Nil)
				s.fleet.refresh(ctx, uuid.Nil)
			case e.Topic == event.Login:
				s.recheck(ctx, e.ID)
			case e.By != byWaiting && e.By != event.BySamples:
				s.forget(e.ID)
				s.fleet.refresh(ctx, e.ID)
			}
		case <-credentials.C:
			s.recheck(ctx, uuid.Nil)
		case <-replicas.C:
			s.fleet.refresh(ctx, uuid.Nil)
		}
	}
}

// Open implements inference.Models.
func (s *Service) Open(ctx context.Context, secret, name string, api modelapi.API) (*inference.Access, error) {
	if a := askOf(ctx); a != nil {
		return s.openFor(ctx, a)
	}
	h, err := s.holder(ctx, secret)
	if err != nil {
		return nil, err
	}
	if h != nil && !modelapi.Allows(h.Apis, api) {
		return nil, fmt.Errorf("the key lacks the API %s; it has: %s: %w", api, strings.Join(h.Apis, ", "), errdefs.ErrPermissionDenied)
	}
	id, err := s.resolve(ctx, h, name)
	if err != nil {
		return nil, err
	}
	d, err := s.fleet.use(ctx, id, name)
	if err != nil {
		return nil, err
	}
	if err := s.limits.take(ctx, h, &s.usage); err != nil {
		return nil, err
	}
	var user *uuid.UUID
	if h != nil {
		user = &h.UserID
	}
	return &inference.Access{Model: d.model, Tenant: tenantOf(ctx, h), Keep: s.prompts.of(d, user), Count: func(r inference.Record) {
		d.count(r, time.Now())
		s.meter.count(r)
		if h != nil {
			s.usage.count(h, r.Usage.Prompt+r.Usage.Completion)
		}
	}}, nil
}

// read runs a read of a request from the database, if a place for it becomes free.
func (s *Service) read(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(store.StatementTimeout(ctx, readTime), readTime)
	defer cancel()
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return &inference.Unavailable{Message: "the gateway has too many requests to check", Err: ctx.Err()}
	}
	return do(ctx)
}

// away is the error of a request that could not be checked. The cause is logged.
func (s *Service) away(ctx context.Context, what string, err error) error {
	if ctx.Err() == nil {
		s.Logger.WarnContext(ctx, what, "error", err)
	}
	return &inference.Unavailable{Message: "the gateway cannot check the request at the moment", Err: err}
}

var _ http.Handler = (*Service)(nil)
