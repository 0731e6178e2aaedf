// Package core wires the services that place and run sessions. The manager and the simulation call
// New, so the simulation runs the code of production.
package core

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/distribution"
	"github.com/berthhq/berth/manager/enrolment"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/occupancy"
	"github.com/berthhq/berth/manager/overlay"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/launch"
	"github.com/berthhq/berth/manager/session/logs"
	"github.com/berthhq/berth/manager/task"
)

// Samples stores the samples of agents and returns the latest.
type Samples interface {
	agents.Recorder
	session.Samples
}

// Recovery is the recovery mode of the cluster.
type Recovery interface {
	On(ctx context.Context) (bool, error)
	Unknown(ctx context.Context, agent string, missing, later []uuid.UUID) error
}

// Config has the dependencies of the services.
type Config struct {
	Client       *ent.Client
	Bus          *event.Bus
	Keys         *seal.Ring // nil: nothing is encrypted
	Policies     *policy.Service
	Budgets      session.Budgets    // nil: no budgets
	Enrolments   *enrolment.Service // nil: every machine belongs to the cluster
	Volumes      session.Volumes    // nil: sessions mount nothing
	Samples      Samples
	LogRetention logs.Retention      // nil: logs of ended sessions stay
	Recovery     Recovery            // nil: no recovery mode
	Templates    session.Templates   // nil: no templates
	Tasks        *task.Service       // nil: registries cannot be scanned
	MaxArraySize int                 // of sessions; 0: session.DefaultArraySize
	Images       image.Own           // registry for images of sessions; zero: no such registry
	Signer       distribution.Signer // of tickets for agents; nil: they fetch images from the registries only
	Networks     overlay.Range       // for sessions on several agents; zero: overlay.Default

	ID          string          // of this manager
	Fingerprint string          // of the cluster CA
	Managers    func() []string // addresses that agents should connect to
	MassLoss    float64         // see agents.Config

	Registry prometheus.Registerer // nil: no metrics
	Logger   *slog.Logger
}

// Core is the wired services.
type Core struct {
	Agents    *agents.Service
	Images    *image.Service
	Scheduler *scheduler.Scheduler
	Sessions  *session.Service
	Occupancy *occupancy.Service
	Layers    *distribution.Service
}

// New wires the services. Sessions need the scheduler to choose resource groups, and the
// scheduler must not reuse devices of orphaned containers, which sessions know: the set of
// orphans belongs to both.
func New(cfg Config) *Core {
	c := &Core{Images: image.New(image.Config{
		Client: cfg.Client, Keys: cfg.Keys, Own: cfg.Images, Tasks: cfg.Tasks, Registry: cfg.Registry, Logger: cfg.Logger,
	})}
	c.Layers = distribution.New(cfg.Signer, cfg.Logger)
	c.Agents = agents.New(agents.Config{
		Client: cfg.Client, Bus: cfg.Bus, Samples: cfg.Samples, Enrolments: cfg.Enrolments, Fingerprint: cfg.Fingerprint,
		ID: cfg.ID, MassLoss: cfg.MassLoss, Managers: cfg.Managers, Layers: c.Layers, Logger: cfg.Logger,
	})
	orphans := launch.NewOrphans()
	c.Scheduler = scheduler.New(scheduler.Config{
		Client: cfg.Client, Bus: cfg.Bus, Policies: cfg.Policies, Orphans: orphans, Images: c.Agents,
		Networks: cfg.Networks, Registry: cfg.Registry, Logger: cfg.Logger,
	})
	sessions := session.Config{
		Client: cfg.Client, Bus: cfg.Bus, Agents: c.Agents, Images: c.Images, Fitter: c.Scheduler, Policies: cfg.Policies, Budgets: cfg.Budgets,
		Volumes: cfg.Volumes, Samples: cfg.Samples, LogRetention: cfg.LogRetention, Orphans: orphans, Keys: cfg.Keys,
		Templates: cfg.Templates, MaxArraySize: cfg.MaxArraySize, Registry: cfg.Registry, Logger: cfg.Logger,
	}
	audit := occupancy.Config{Client: cfg.Client, Bus: cfg.Bus, Agents: c.Agents, Registry: cfg.Registry, Logger: cfg.Logger}
	if cfg.Recovery != nil {
		sessions.Unknown, audit.Recovering = cfg.Recovery.Unknown, cfg.Recovery.On
	}
	c.Sessions = session.New(sessions)
	audit.Sessions = c.Sessions
	c.Occupancy = occupancy.New(audit)
	return c
}
