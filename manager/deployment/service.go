package deployment

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
)

// Agents reaches the worker machines.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
	Streams(agent string) (portstream.Opener, error)
}

// Users reads what users can do at this time.
type Users interface {
	Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
}

// Loads reads what gateways measure.
type Loads interface {
	// Read returns the total of each deployment; none for a deployment that no gateway reports about.
	Read(ctx context.Context, deployments ...uuid.UUID) (map[uuid.UUID]load.Total, error)
}

// Samples reads the newest measurements of containers.
type Samples interface {
	Latest(ctx context.Context, kernels []uuid.UUID) (map[uuid.UUID]report.Stats, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Keys     *seal.Ring
	Bus      *event.Bus
	Images   *image.Service
	Sessions *session.Service
	Policies *policy.Service
	Agents   Agents
	Users    Users
	Loads    Loads
	Samples  Samples
	Logger   *slog.Logger
}

// Service creates and changes deployments and, on the leader, keeps them served.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// find returns a deployment that has not ended, if the viewer can do op with it.
func (s *Service) find(ctx context.Context, id uuid.UUID, op access.Operation) (*ent.Deployment, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	d, err := s.Client.Deployment.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "deployment", "id")
	}
	if err := permit.To(ctx, op, d); err != nil {
		return nil, err
	}
	if d.Status == entdeployment.StatusEnding && op != access.Delete || d.EndedAt != nil {
		return nil, problem.Precondition("deployment %s is %s", d.Name, d.Status).WithField("id")
	}
	return d, nil
}

// changing runs a change of a deployment in a transaction that no decision and no other change interferes with.
func (s *Service) changing(ctx context.Context, id uuid.UUID, do func(ctx context.Context, tx *ent.Tx, d *ent.Deployment) error) error {
	ctx = viewer.SystemContext(ctx)
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		d, err := tx.Deployment.Query().Where(entdeployment.ID(id)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("read deployment: %w", err)
		}
		return do(ctx, tx, d)
	})
	if err == nil {
		s.changed(ctx, id)
	}
	return err
}

// changed makes the leader and the gateways read a deployment again.
func (s *Service) changed(ctx context.Context, id uuid.UUID) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Deployment, ID: id})
}

// payload reads a deployment as the viewer after a change.
func (s *Service) payload(ctx context.Context, id uuid.UUID, err error) (*DeploymentPayload, error) {
	if err != nil {
		return nil, err
	}
	d, err := s.Client.Deployment.Get(ctx, id)
	return &DeploymentPayload{Deployment: d}, err
}

// note is a row of the history.
type note struct {
	kind          deploymentevent.Kind
	revision      int
	before, after *int
	metric        string
	value, limit  *float64
	message       string
}

const maxMessage = 2000 // bytes

func record(ctx context.Context, tx *ent.Tx, d uuid.UUID, n note) error {
	c := tx.DeploymentEvent.Create().SetDeploymentID(d).SetKind(n.kind).SetNillableReplicasBefore(n.before).SetNillableReplicasAfter(n.after).
		SetMetric(n.metric).SetNillableValue(n.value).SetNillableLimit(n.limit).SetMessage(n.message[:min(len(n.message), maxMessage)])
	if n.revision > 0 {
		c.SetRevision(n.revision)
	}
	if err := c.Exec(ctx); err != nil {
		return fmt.Errorf("record event: %w", err)
	}
	return nil
}
