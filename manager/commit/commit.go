package commit

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// kind is the kind of the tasks.
const kind = "session.commit"

// Agents reaches the agents.
type Agents interface {
	RPC(name string) (agentpb.AgentClient, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Images   *image.Service
	Policies *policy.Service
	Tasks    *task.Service
	Agents   Agents
}

// Service makes images of sessions.
type Service struct{ Config }

// New returns a Service and registers its tasks.
func New(cfg Config) *Service {
	s := &Service{cfg}
	cfg.Tasks.Register(kind, runner{s})
	cfg.Images.OnShare(s.shareable)
	return s
}

// CommitSessionInput describes the image of a session.
type CommitSessionInput struct {
	Session     uuid.UUID
	Name        string
	Tag         *string
	Description *string
	Project     *uuid.UUID
}

// CommitSessionPayload is the task that makes the image, and the reference of the image.
type CommitSessionPayload struct {
	Task      *ent.Task
	Reference string
}

// work is the input of a task.
type work struct {
	Session uuid.UUID
	Target
}

// Target is an image that is going to be made.
type Target struct {
	Repository  string // without the host
	Tag         string
	Description *string    // nil: that of the replaced image
	Project     *uuid.UUID // whose members can use it; nil: only the owner can
	Owner       uuid.UUID
	Domain      uuid.UUID
}

// Name returns the name of the image in its registry.
func (w Target) Name() string { return w.Repository + ":" + w.Tag }

// Short returns the name for the owner.
func (w Target) Short() string { return w.Name()[strings.LastIndexByte(w.Repository, '/')+1:] }

// CommitSession enqueues a task that makes an image of a running session.
func (s *Service) CommitSession(ctx context.Context, in CommitSessionInput) (*CommitSessionPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	tag, err := s.Check(ctx, v, Wanted{Name: in.Name, Tag: in.Tag, Description: in.Description, Project: in.Project})
	if err != nil {
		return nil, err
	}
	sess, err := s.session(ctx, in.Session)
	if err != nil {
		return nil, permit.Missing(err, "session", "session")
	}
	// The image contains the inside of the session.
	if err := permit.To(ctx, access.Enter, sess); err != nil {
		return nil, err
	}
	if err := running(sess); err != nil {
		return nil, err
	}
	reg, err := s.Images.OwnRegistry(ctx)
	if err != nil {
		return nil, err
	}
	user, err := s.Client.User.Get(viewer.SystemContext(ctx), v.User)
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	w := work{Session: sess.ID, Target: Target{
		Repository: image.OwnRepository(user, in.Name), Tag: tag, Description: in.Description,
		Project: in.Project, Owner: user.ID, Domain: user.DomainID,
	}}
	out := &CommitSessionPayload{Reference: reg.Host + "/" + w.Name()}
	if out.Task, err = s.enqueue(ctx, sess, reg, w); err != nil {
		return nil, err
	}
	s.Tasks.Wake(ctx, out.Task.ID)
	return out, nil
}

// Wanted is what a user says about an image that they want to make.
type Wanted struct {
	Name        string
	Tag         *string // nil or empty: latest
	Description *string
	Project     *uuid.UUID
}

// Check checks what a user says about an image, and returns the tag.
func (s *Service) Check(ctx context.Context, v *viewer.Viewer, in Wanted) (string, error) {
	tag := image.DefaultTag
	if in.Tag != nil && *in.Tag != "" {
		tag = *in.Tag
	}
	if err := image.CheckOwnName(in.Name, tag); err != nil {
		return "", err
	}
	if in.Description != nil {
		if err := image.CheckDescription(*in.Description); err != nil {
			return "", err
		}
	}
	if in.Project != nil {
		return tag, s.Images.CheckProject(ctx, v, *in.Project)
	}
	return tag, nil
}

// session reads a session with its image and its main kernel.
func (s *Service) session(ctx context.Context, id uuid.UUID) (*ent.Session, error) {
	return s.Client.Session.Query().Where(session.ID(id)).WithImage().
		WithKernels(func(q *ent.KernelQuery) { q.Where(kernel.Index(0)).WithAgent() }).Only(ctx)
}

func running(sess *ent.Session) error {
	if sess.Status != lifecycle.Running {
		return problem.Precondition("session %s is %s: only a running session can be saved as an image", sess.Name, sess.Status).WithField("session")
	}
	return nil
}

func (s *Service) enqueue(ctx context.Context, sess *ent.Session, reg *ent.Registry, w work) (t *ent.Task, err error) {
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		system := viewer.SystemContext(ctx)
		if err := lock(ctx, tx, w.Target); err != nil {
			return err
		}
		busy, err := tx.Task.Query().Where(enttask.Kind(kind), enttask.SubjectID(sess.ID), enttask.EndedAtIsNil()).Exist(system)
		if err != nil {
			return fmt.Errorf("look for tasks: %w", err)
		}
		if busy {
			return problem.Precondition("session %s is being saved already", sess.Name).WithField("session")
		}
		if _, err := s.Room(system, tx, reg.Host, w.Target, 0); err != nil {
			return err
		}
		t, err = s.Tasks.Enqueue(ctx, tx, task.Wanted{
			Kind: kind, Title: fmt.Sprintf("Save session %s as %s", sess.Name, w.Short()),
			Input: w, Subject: sess.ID, Domain: sess.DomainID,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.Unwrap(), nil
}

// lock keeps other images of the owner and the project from being added before the transaction ends.
func lock(ctx context.Context, tx *ent.Tx, w Target) error {
	if err := image.LockOwn(ctx, tx, w.Owner); err != nil || w.Project == nil {
		return err
	}
	return store.Lock(ctx, tx, "images of project "+w.Project.String())
}

// replaced returns the image of the same reference, or nil, and an error if it has another owner.
func (s *Service) replaced(ctx context.Context, tx *ent.Tx, host string, w Target) (*ent.Image, error) {
	old, err := tx.Image.Query().Where(entimage.Reference(host + "/" + w.Name())).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up image: %w", err)
	}
	for _, i := range old {
		if i.OwnerID == nil || *i.OwnerID != w.Owner {
			return nil, problem.Exists("name", "the image %s exists and is not yours", w.Short())
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	return old[0], nil
}
