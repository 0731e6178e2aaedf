package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/ent/kernel"
	entregistry "github.com/berthhq/berth/ent/registry"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/commit"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/task"
)

const (
	// longest is the time limit of one attempt. The push tokens are valid for as long.
	longest = 2 * time.Hour
	// attempts limits the builds that an interruption of a manager, an agent or the network between them
	// repeats.
	attempts = 2
	// epoch is the time of all files that steps write, so that the same input results in the same image:
	// 2020-01-01. Archives cannot have files from before 1980.
	epoch = 1577836800
)

// work is the input of a task.
type work struct{ Build uuid.UUID }

// runner runs the tasks.
type runner struct{ *Service }

// AtOnce implements task.Wide: a build waits for its agent most of the time.
func (r runner) AtOnce() int { return 64 }

// Run implements task.Handler. It returns while the session waits, and is called again.
func (r runner) Run(ctx context.Context, p *task.Progress, in []byte) error {
	var w work
	if err := json.Unmarshal(in, &w); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	ctx, cancel := context.WithTimeout(viewer.SystemContext(ctx), longest)
	defer cancel()
	b, err := r.Client.ImageBuild.Get(ctx, w.Build)
	if ent.IsNotFound(err) {
		return problem.Precondition("the build no longer exists")
	}
	if err != nil {
		return fmt.Errorf("read build: %w", err)
	}
	if b.EndedAt != nil {
		return problem.Precondition("the build has ended")
	}
	err = r.attempt(ctx, p, b)
	said, known := problem.From(err)
	switch {
	case err == nil || !known || ctx.Err() != nil:
		return err
	case !hopeless(said.Code):
		return errors.Join(err, p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.ImageBuild.UpdateOne(b).SetMessage(said.Message).Exec(ctx) // until the next attempt
		}))
	}
	return errors.Join(err, r.fail(ctx, p, b, err))
}

// hopeless reports whether a repetition does not help.
func hopeless(code string) bool { return task.Hopeless(code) || code == problem.CodeResourceExhausted }

// stepError is the failure of a step.
type stepError struct {
	error
	step string
}

func (e *stepError) Unwrap() error { return e.error }

func (r runner) attempt(ctx context.Context, p *task.Progress, b *ent.ImageBuild) error {
	if b.SessionID == nil {
		return problem.Precondition("the session of the build no longer exists")
	}
	sess, err := r.Client.Session.Query().Where(entsession.ID(*b.SessionID)).WithImage().
		WithKernels(func(q *ent.KernelQuery) { q.Where(kernel.Index(0)).WithAgent() }).Only(ctx)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	switch {
	case sess.Status.Final() || sess.Status == lifecycle.Terminating:
		return problem.Precondition("the session of the build has ended: %s", ended(sess))
	case sess.Status != lifecycle.Running:
		return task.Wait("session %s is %s", sess.Name, sess.Status)
	case len(sess.Edges.Kernels) == 0 || sess.Edges.Kernels[0].Edges.Agent == nil:
		return problem.Unavailable("session %s has no container", sess.Name)
	case b.Attempt >= attempts:
		return problem.Precondition("the build was interrupted %d times; the last time: %s", b.Attempt, b.Message)
	}
	if err := r.begin(ctx, p, b); err != nil {
		return err
	}
	reg, err := r.Images.OwnRegistry(ctx)
	if err != nil {
		return err
	}
	from, err := r.source(ctx, p, b, sess)
	if err != nil {
		return err
	}
	b = from.build
	t := target(b)
	done, err := r.ask(ctx, p, from, sess, reg, t)
	if err != nil {
		return err
	}
	if done.Failure != "" {
		return &stepError{problem.Precondition("%s", done.Failure), done.FailedStep}
	}
	_, err = r.Commits.Publish(ctx, p, reg, t, commit.Made{
		Digest: done.Digest, Session: sess.ID, Base: b.Base, Adds: from.adds + done.LayerBytes,
	}, func(ctx context.Context, tx *ent.Tx, img *ent.Image) error {
		return tx.ImageBuild.UpdateOne(b).SetStatus(imagebuild.StatusSucceeded).SetEndedAt(clock.Now()).SetMessage("").SetImageID(img.ID).
			SetImageDigest(done.Digest).SetSteps(int(done.Steps)).SetCachedSteps(int(done.CachedSteps)).SetLayerBytes(done.LayerBytes).
			SetCacheTag(cacheTag(b)).ClearInputSealed().Exec(ctx)
	})
	if err != nil {
		return err
	}
	r.end(ctx, sess.ID)
	r.releaseInput(ctx, b)
	return nil
}

func target(b *ent.ImageBuild) commit.Target {
	t := commit.Target{Repository: b.Repository, Tag: b.Tag, Description: b.Description, Owner: b.OwnerID, Domain: b.DomainID}
	if b.Shared {
		t.Project = &b.ProjectID
	}
	return t
}

// ended returns why a session has ended.
func ended(sess *ent.Session) string {
	if sess.StatusMessage != "" {
		return sess.StatusMessage
	}
	if sess.TerminationReason != nil {
		return strings.ReplaceAll(string(*sess.TerminationReason), "_", " ")
	}
	return string(sess.Status)
}

// begin records that an attempt starts.
func (r runner) begin(ctx context.Context, p *task.Progress, b *ent.ImageBuild) error {
	return p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		up := tx.ImageBuild.UpdateOne(b).SetStatus(imagebuild.StatusRunning).AddAttempt(1)
		if b.StartedAt == nil {
			up.SetStartedAt(clock.Now())
		}
		return up.Exec(ctx)
	})
}

// fail records the failure of a build, and ends its session.
func (r runner) fail(ctx context.Context, p *task.Progress, b *ent.ImageBuild, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	said, _ := problem.From(cause)
	step := (*stepError)(nil)
	err := p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		up := tx.ImageBuild.UpdateOne(b).SetStatus(imagebuild.StatusFailed).SetMessage(said.Message).SetEndedAt(clock.Now()).ClearInputSealed()
		if errors.As(cause, &step) {
			up.SetFailedStep(step.step)
		}
		return up.Exec(ctx)
	})
	if err == nil && b.SessionID != nil {
		r.end(ctx, *b.SessionID)
	}
	if err == nil {
		r.releaseInput(ctx, b)
	}
	return err
}

// ask lets the agent of the session build, and waits for the end.
func (r runner) ask(ctx context.Context, p *task.Progress, from *source, sess *ent.Session, reg *ent.Registry, t commit.Target) (*agentpb.BuildProgress, error) {
	k := sess.Edges.Kernels[0]
	request, err := r.request(ctx, p, from, k, reg, t)
	if err != nil {
		return nil, err
	}
	rpc, err := r.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.BuildImage(ctx, request)
	for err == nil {
		var m *agentpb.BuildProgress
		if m, err = stream.Recv(); err == nil && m.Done {
			return m, nil
		}
	}
	return nil, failure(k.Edges.Agent.Name, err)
}

// failure converts an agent's error.
func failure(agent string, err error) error {
	if errors.Is(err, io.EOF) {
		return problem.Unavailable("agent %s: the build ended without a result", agent)
	}
	return commit.Failure(agent, err)
}

func (r runner) request(ctx context.Context, p *task.Progress, from *source, k *ent.Kernel, reg *ent.Registry, t commit.Target) (*agentpb.BuildImageRequest, error) {
	b, in := from.build, from.input
	to, err := r.Commits.Upload(ctx, p, reg, t, b.Base)
	if err != nil {
		return nil, err
	}
	out := &agentpb.BuildImageRequest{
		Epoch: p.Epoch(), KernelId: k.ID.String(), LaunchEpoch: k.LaunchEpoch,
		Dockerfile: b.Dockerfile, Context: in.Context, Target: in.Target, Args: in.Args, Secrets: in.Secrets, NoCache: in.NoCache,
		SourceDateEpoch: epoch, Images: in.Images, MaxBytes: to.MaxBytes,
		Repository: to.Repository, PlainHttp: to.PlainHTTP, Username: to.Username, Password: to.Password, MountFrom: to.MountFrom, Indexed: to.Indexed,
	}
	out.Proxy, out.Certificates = reg.Proxy, reg.Certificates
	out.Fetched = in.Git != nil
	if in.Files != nil {
		out.FilesRepository, out.Files = reg.Host+"/"+image.PartsRepository(b.OwnerID), in.Files.Parts
	}
	if err := r.registries(ctx, in, out); err != nil {
		return nil, err
	}
	return out, r.cache(ctx, b, reg, out)
}

// registries adds the credentials of the base images' registries.
func (r runner) registries(ctx context.Context, in input, out *agentpb.BuildImageRequest) error {
	list, err := r.Client.Registry.Query().Where(entregistry.HostIn(in.Hosts...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read registries: %w", err)
	}
	for _, reg := range list {
		username, password, err := r.Images.Login(ctx, reg)
		if err != nil {
			return err
		}
		out.Registries = append(out.Registries, &agentpb.BuildRegistry{
			Host: reg.Host, PlainHttp: reg.PlainHTTP, Username: username, Password: password, Proxy: reg.Proxy, Certificates: reg.Certificates,
		})
	}
	return nil
}
