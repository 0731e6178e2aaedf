// Package session manages sessions and kernels. It checks and stores requests, moves sessions
// through their states and, on the leader, asks the agents until the containers are in the stored
// state. API calls only store the wanted state and the reconciler acts, as often as needed, so a
// lost or repeated event has no effect.
package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/launch"
	"github.com/berthhq/berth/manager/session/logs"
	"github.com/berthhq/berth/manager/session/meter"
	"github.com/berthhq/berth/manager/session/mounts"
	"github.com/berthhq/berth/manager/session/workqueue"
)

// Agents reaches the worker machines.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
	HasImage(agent, reference, digest string) bool
	// Pull makes an image present on an agent.
	Pull(ctx context.Context, agent string, r *agentpb.PullImageRequest) error
	// Missing describes what an agent lacks of an image, such as "312 MiB, about 4 s"; "" if it is not known.
	Missing(agent, reference string) string
	// Disrupted reports whether so many agents of a group are unreachable at once that sessions
	// there must not be ended or moved because of that.
	Disrupted(group uuid.UUID) bool
}

// ErrNeverFits is in the chain of the error of Fitter.Choose: a request is valid, but
// no agent could run it even if the agent were idle.
var ErrNeverFits = errors.New("no agent could ever run it")

// Fitter chooses the group of a session, and refuses with ErrNeverFits a session that
// no agent of the groups could ever run.
type Fitter interface {
	Choose(ctx context.Context, groups []uuid.UUID, n Need) (uuid.UUID, error)
}

// Need is what a session requires of agents.
type Need struct {
	Architecture string
	Slots        resource.Slots // of each kernel
	Kernels      int
	Only         []uuid.UUID // the agents that it may run on, if not all
}

// Images finds registered images and the credentials of their registries.
type Images interface {
	PullRequest(ctx context.Context, img *ent.Image) (*agentpb.PullImageRequest, error)
	Resolve(ctx context.Context, reference string) (*ent.Image, error)
}

// Policies returns the limits that apply to sessions, and their usage.
type Policies interface {
	All(ctx context.Context, q policy.Querier) ([]policy.Limit, error)
	Binding(ctx context.Context, at policy.Place) ([]policy.Limit, error)
	Usage(ctx context.Context, q policy.Querier, limits []policy.Limit) (*policy.Usage, error)
}

// Volumes returns what the volume of a folder does not allow the viewer, and what users are not
// allowed to do with folders.
type Volumes interface {
	Allow(ctx context.Context, f *ent.Vfolder, need ...access.VolumePermission) error
	mounts.Volumes
}

// Samples are the latest statistics of kernels.
type Samples interface {
	Latest(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]report.Stats, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client    *ent.Client
	Bus       *event.Bus
	Agents    Agents
	Images    Images
	Fitter    Fitter
	Policies  Policies
	Budgets   Budgets // nil: there are none
	Volumes   Volumes
	Templates Templates // nil: there are none
	// MaxArraySize limits the members of an array; 0: DefaultArraySize.
	MaxArraySize int
	Samples      Samples
	LogRetention logs.Retention  // nil: logs of ended sessions stay until their agents remove them
	Orphans      *launch.Orphans // shared with the scheduler; nil: a set of its own
	Keys         *seal.Ring      // encrypts environments and scripts; nil: they are stored in plaintext
	// Unknown, if set, is called for containers of an agent that the database does not know:
	// missing ones have no kernel, later ones are a later start of a known kernel.
	Unknown  func(ctx context.Context, agent string, missing, later []uuid.UUID) error
	Registry prometheus.Registerer // nil: no metrics
	Logger   *slog.Logger
}

// Service creates, changes and ends sessions.
type Service struct {
	Config
	queue    *workqueue.Queue
	observed *launch.Observations
	seen     workqueue.Seen
	kept     workqueue.Kept
	requests sync.Map // ids of kernels whose agents are processing a request to start them
	resolver resolver
	storer   storer
	meter    meter.Meter
	mounts   mounts.Keeper
}

// New returns a Service.
func New(cfg Config) *Service {
	cfg.Orphans = cmp.Or(cfg.Orphans, launch.NewOrphans())
	s := &Service{Config: cfg, queue: workqueue.New(), observed: launch.NewObservations(), kept: workqueue.Kept{For: passEvery}, meter: meter.New(cfg.Registry)}
	s.mounts = mounts.Keeper{Client: cfg.Client, Bus: cfg.Bus, Agents: cfg.Agents, Volumes: cfg.Volumes, Logger: cfg.Logger}
	batching := &batchingStore{next: database{s}}
	s.storer, s.resolver = batching, newCoalescer(database{s}, batching.gather)
	return s
}

// changed notifies listeners, such as this manager's reconciler and scheduler, that a session has a
// new version. Call it after the transaction has committed.
func (s *Service) changed(ctx context.Context, id uuid.UUID) { s.changedBy(ctx, id, "") }

// changedBy is changed with a mark by which loops ignore their own events.
func (s *Service) changedBy(ctx context.Context, id uuid.UUID, by string) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Session, ID: id, By: by})
}
