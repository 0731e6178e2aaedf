package prepull

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/resourcegroup"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// kind is the kind of the tasks.
const kind = "image.prepull"

// Agents pulls images.
type Agents interface {
	RPC(name string) (agentpb.AgentClient, error)
	HasImage(agent, reference, digest string) bool
	Pull(ctx context.Context, agent string, r *agentpb.PullImageRequest) error
}

// Images knows how to reach the registry of an image.
type Images interface {
	PullRequest(ctx context.Context, img *ent.Image) (*agentpb.PullImageRequest, error)
}

// Pins sets the images that agents keep although they need space.
type Pins interface {
	Pin(agent string, references []string)
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Tasks  *task.Service
	Agents Agents
	Images Images
	Pins   Pins
	Logger *slog.Logger
	Now    func() time.Time // nil: the clock
}

// Service brings images to agents.
type Service struct{ Config }

// New returns a Service and registers its tasks.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = clock.Now
	}
	s := &Service{cfg}
	cfg.Tasks.Register(kind, runner{s})
	return s
}

// PrepullImageInput names the image and the resource group whose agents should have it, and when they pull it; nil: now,
// and at any time.
type PrepullImageInput struct {
	Image    uuid.UUID
	Group    uuid.UUID
	StartsAt *time.Time
	Window   *PrepullWindowInput
}

// maxWait limits the time before the start of a task.
const maxWait = 30 * 24 * time.Hour

// PrepullImagePayload is the task.
type PrepullImagePayload struct{ Task *ent.Task }

// work is the input of a task.
type work struct {
	Image, Group uuid.UUID
	Window       *window `json:",omitempty"` // nil: at any time
}

// schedule returns when a task starts, zero for now, and its window.
func (s *Service) schedule(in PrepullImageInput) (at time.Time, w *window, err error) {
	now := s.Now()
	if in.StartsAt != nil {
		if in.StartsAt.Sub(now) > maxWait {
			return at, nil, problem.Invalid("startsAt", "%s is more than 30 days from now", in.StartsAt.Format(time.RFC3339)).WithLimit("30 days")
		}
		if in.StartsAt.After(now) {
			at = *in.StartsAt
		}
	}
	if in.Window == nil {
		return at, nil, nil
	}
	if w, err = in.Window.parse(); err != nil {
		return at, nil, err
	}
	first := now
	if !at.IsZero() {
		first = at
	}
	open, change, err := w.at(first)
	if err == nil && !open {
		at = change
	}
	return at, w, err
}

// PrepullImage enqueues a task that pulls an image on all agents of a resource group, or returns the one that has not
// ended. It needs the permission to change the group, whose agents get the work.
func (s *Service) PrepullImage(ctx context.Context, in PrepullImageInput) (*PrepullImagePayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	img, err := s.Client.Image.Query().Where(entimage.ID(in.Image)).WithRegistry().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "image", "image")
	}
	group, err := s.Client.ResourceGroup.Get(ctx, in.Group)
	if err != nil {
		return nil, permit.Missing(err, "resource group", "group")
	}
	if err := permit.To(ctx, access.Update, group); err != nil {
		return nil, err
	}
	if img.Status == entimage.StatusGone || img.Edges.Registry == nil {
		return nil, problem.Precondition("image %s no longer exists in its registry", img.Name).WithField("image")
	}
	at, w, err := s.schedule(in)
	if err != nil {
		return nil, err
	}
	t, err := s.enqueue(ctx, img, group, at, w)
	if err != nil {
		return nil, err
	}
	s.Tasks.Wake(ctx, t.ID)
	return &PrepullImagePayload{Task: t}, nil
}

func (s *Service) enqueue(ctx context.Context, img *ent.Image, group *ent.ResourceGroup, at time.Time, w *window) (t *ent.Task, err error) {
	title := fmt.Sprintf("Pull image %s on the agents of %s", img.Name, group.Name)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "prepull "+img.ID.String()); err != nil {
			return err
		}
		t, err = tx.Task.Query().Where(
			enttask.Kind(kind), enttask.SubjectID(img.ID), enttask.Title(title), enttask.EndedAtIsNil(),
		).First(viewer.SystemContext(ctx))
		if err == nil || !ent.IsNotFound(err) {
			return err
		}
		wanted := task.Wanted{Kind: kind, Title: title, Input: work{img.ID, group.ID, w}, Subject: img.ID, StartsAt: at}
		if !at.IsZero() {
			wanted.Message = fmt.Sprintf("It starts at %s.", w.show(at))
		}
		t, err = s.Tasks.Enqueue(ctx, tx, wanted)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.Unwrap(), nil
}

// agentsOf returns the names of the agents of resource groups that can run an image.
func (s *Service) agentsOf(ctx context.Context, img *ent.Image, groups ...uuid.UUID) ([]string, error) {
	q := s.Client.Agent.Query().Where(agent.HasResourceGroupWith(resourcegroup.IDIn(groups...)), agent.StatusEQ(agent.StatusAlive))
	if img.Architecture != "" {
		q.Where(agent.Architecture(img.Architecture))
	}
	var names []string
	if err := q.Order(agent.ByName()).Select(agent.FieldName).Scan(viewer.SystemContext(ctx), &names); err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return names, nil
}
