package build

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/commit"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// kind is the kind of the tasks.
const kind = "image.build"

// Agents reaches the agents.
type Agents interface {
	RPC(name string) (agentpb.AgentClient, error)
}

// Users reads what users can do at this time.
type Users interface {
	Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Keys     *seal.Ring
	Images   *image.Service
	Commits  *commit.Service
	Sessions *session.Service
	Tasks    *task.Service
	Agents   Agents
	Users    Users
	Logger   *slog.Logger
}

// Service builds images.
type Service struct {
	Config
	parts store.Limit // parts of files that are being received
}

// New returns a Service and registers its tasks.
func New(cfg Config) *Service {
	s := &Service{Config: cfg}
	cfg.Tasks.Register(kind, runner{s})
	return s
}

// BuildImageInput describes an image and how to build it.
type BuildImageInput struct {
	Name          string
	Tag           *string
	Description   *string
	Kind          imagebuild.Kind
	Text          string
	Base          *string
	Git           *BuildGitInput
	Context       *string
	Files         []string
	Target        *string
	Args          map[string]string
	Secrets       map[string]string
	NoCache       *bool
	Project       *uuid.UUID
	Shared        *bool
	Slots         resource.Slots
	ResourceGroup *uuid.UUID
}

// ImageBuildPayload is a build after a change.
type ImageBuildPayload struct{ Build *ent.ImageBuild }

// Limits and defaults of the sessions of builds.
const (
	defaultCPU = 1000    // thousandths
	defaultMem = 2 << 30 // BuildKit itself uses about 100 MiB of it
	// lifetime ends a session in seconds if nothing else does. It is longer than a build may take.
	lifetime = int(longest/1e9) + 600
)

// BuildImage stores a build with its session and its task.
func (s *Service) BuildImage(ctx context.Context, in BuildImageInput) (*ImageBuildPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	tag, err := s.Commits.Check(ctx, v, commit.Wanted{Name: in.Name, Tag: in.Tag, Description: in.Description})
	if err != nil {
		return nil, err
	}
	if err := s.Sessions.CheckProject(ctx, v, in.Project); err != nil {
		return nil, err
	}
	reg, err := s.Images.OwnRegistry(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(ctx, in)
	if err != nil {
		return nil, err
	}
	if plan.input.Files, err = s.keep(ctx, v, in.Files); err != nil {
		return nil, err
	}
	user, err := s.Client.User.Get(viewer.SystemContext(ctx), v.User)
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	sess, err := s.sandbox(ctx, in, plan)
	if err != nil {
		s.release(ctx, v.User, plan.input.Files)
		return nil, err
	}
	b, err := s.insert(ctx, in, plan, sess, commit.Target{
		Repository: image.OwnRepository(user, in.Name), Tag: tag, Description: in.Description, Owner: user.ID, Domain: user.DomainID,
	}, reg.Host)
	if err != nil {
		s.end(ctx, sess.ID)
		s.release(ctx, v.User, plan.input.Files)
		return nil, err
	}
	s.Tasks.Wake(ctx, *b.TaskID)
	return &ImageBuildPayload{Build: b}, nil
}

// sandbox creates the session of a build. All limits of sessions apply to it.
func (s *Service) sandbox(ctx context.Context, in BuildImageInput, p *plan) (*ent.Session, error) {
	name := "build-" + strings.ReplaceAll(in.Name, "/", "-")
	name = name[:min(len(name), 50)] + "-" + uuid.NewString()[:8]
	slots := resource.Slots{resource.CPU: defaultCPU, resource.Mem: defaultMem}
	for slot, amount := range in.Slots {
		slots[slot] = amount
	}
	interactive, no, seconds := entsession.TypeInteractive, false, lifetime
	out, err := s.Sessions.CreateSession(ctx, session.CreateSessionInput{
		Name: &name, Image: p.base.Reference, Type: &interactive, Slots: slots, Project: in.Project, ResourceGroup: in.ResourceGroup,
		AutoMount: &no, Lifetime: &seconds, Preemptible: &no, Tags: []string{"build"},
	})
	if err != nil {
		return nil, err
	}
	return out.Session, nil
}

// insert stores a build and enqueues its task.
func (s *Service) insert(ctx context.Context, in BuildImageInput, p *plan, sess *ent.Session, t commit.Target, host string) (b *ent.ImageBuild, err error) {
	shared := in.Shared != nil && *in.Shared
	sealed, err := s.seal(p.input)
	if err != nil {
		return nil, err
	}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		system := viewer.SystemContext(ctx)
		if _, err := s.Commits.Room(system, tx, host, t, 0); err != nil {
			return err
		}
		b, err = ofGit(tx.ImageBuild.Create(), p.input.Git).SetDomainID(sess.DomainID).SetProjectID(sess.ProjectID).SetOwnerID(t.Owner).
			SetRepository(t.Repository).SetTag(t.Tag).SetName(t.Short()).SetKind(in.Kind).SetDockerfile(p.dockerfile).SetDigest(p.digest).
			SetBase(p.base.Reference).SetShared(shared).SetNillableDescription(in.Description).SetInputSealed(sealed).SetSessionID(sess.ID).Save(system)
		if err != nil {
			return fmt.Errorf("store build: %w", err)
		}
		job, err := s.Tasks.Enqueue(ctx, tx, task.Wanted{
			Kind: kind, Title: "Build image " + t.Short(), Input: work{Build: b.ID}, Subject: sess.ID, Domain: sess.DomainID,
		})
		if err != nil {
			return err
		}
		b, err = b.Update().SetTaskID(job.ID).Save(system)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.Unwrap(), nil
}
