package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/recipe"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/task"
)

// BuildGitInput is a directory of a Git repository.
type BuildGitInput struct {
	Address   string
	Ref       *string
	Directory *string
	File      *string
	Username  *string
	Secret    *string
}

// repository is the Git repository of a build. The session of the build fetches it, so its Dockerfile and its images
// are known only then.
type repository struct {
	Address, Ref, Directory, File string
	Username, Secret              string
	Base                          string    // that requirements.txt and environment.yml are installed on; "" = none
	Within                        uuid.UUID // project that the credential of the user is restricted to
}

// gitPlan checks the repository, and finds an image for the session that fetches it.
func (s *Service) gitPlan(ctx context.Context, in BuildImageInput) (*plan, error) {
	g := in.Git
	if g == nil {
		return nil, problem.Invalid("git", "is missing: a build of the kind GIT needs the address of a repository")
	}
	if strings.TrimSpace(in.Text) != "" || in.Context != nil || len(in.Files) > 0 {
		return nil, problem.Invalid("git", "the files and the description come from the repository: text, context and files must be empty")
	}
	if err := recipe.CheckGit(g.Address, value(g.Ref), value(g.Directory)); err != nil {
		return nil, malformed("git", err)
	}
	if err := recipe.CheckGit(g.Address, "", value(g.File)); err != nil {
		return nil, malformed("git.file", err)
	}
	if _, known := in.Secrets[value(g.Secret)]; g.Secret != nil && !known {
		return nil, problem.Invalid("git.secret", "%.100q is not one of secrets", *g.Secret)
	}
	base, err := s.fetcher(ctx, value(in.Base))
	if err != nil {
		return nil, err
	}
	v := viewer.From(ctx)
	p := &plan{base: base, input: input{
		Target: value(in.Target), Args: maps.Clone(in.Args), Secrets: in.Secrets, NoCache: in.NoCache != nil && *in.NoCache,
		Git: &repository{
			Address: g.Address, Ref: value(g.Ref), Directory: value(g.Directory), File: value(g.File),
			Username: value(g.Username), Secret: value(g.Secret), Base: value(in.Base), Within: v.Within,
		},
	}}
	sum := sha256.Sum256([]byte(g.Address + "\n" + value(g.Ref) + "\n" + value(g.Directory)))
	p.digest = hex.EncodeToString(sum[:])
	return p, nil
}

// fetcher returns the image of the session that fetches a repository: the base image if the user names one, and
// otherwise the smallest that they can use.
func (s *Service) fetcher(ctx context.Context, base string) (*ent.Image, error) {
	if base == "" {
		return s.Images.Smallest(ctx)
	}
	img, err := s.Images.Resolve(ctx, base)
	return img, problem.Within(err, "base")
}

// source is what a build is going to do.
type source struct {
	input
	build *ent.ImageBuild
	adds  int64 // bytes that the base image adds to public images
}

// source returns the input of a build. If it is a Git repository, the agent fetches it first.
func (r runner) source(ctx context.Context, p *task.Progress, b *ent.ImageBuild, sess *ent.Session) (*source, error) {
	in, err := r.open(b.InputSealed)
	if err != nil {
		return nil, err
	}
	out := &source{input: in, build: b, adds: sess.Edges.Image.AddedBytes}
	if in.Git == nil {
		return out, nil
	}
	got, err := r.fetch(ctx, p, b, sess.Edges.Kernels[0], in)
	if err != nil {
		return nil, err
	}
	plan, err := r.read(ctx, b, in, got)
	if err != nil {
		return nil, &stepError{err, "git " + got.File}
	}
	out.input, out.adds = plan.input, plan.base.AddedBytes
	err = p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		out.build, err = tx.ImageBuild.UpdateOne(b).SetDockerfile(plan.dockerfile).SetBase(plan.base.Reference).SetDigest(plan.digest).
			SetGitCommit(got.Commit).Save(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store the commit of a build: %w", err)
	}
	out.build = out.build.Unwrap()
	return out, nil
}

// fetch lets the agent fetch the repository. A repetition fetches the commit of the first time.
func (r runner) fetch(ctx context.Context, p *task.Progress, b *ent.ImageBuild, k *ent.Kernel, in input) (*agentpb.FetchSourceResponse, error) {
	g := in.Git
	ask := &agentpb.FetchSourceRequest{
		Epoch: p.Epoch(), KernelId: k.ID.String(), LaunchEpoch: k.LaunchEpoch,
		Address: g.Address, Ref: g.Ref, Directory: g.Directory, File: g.File, Username: g.Username, Password: in.Secrets[g.Secret],
	}
	if b.GitCommit != "" {
		ask.Ref = b.GitCommit
	}
	if ask.Password != "" {
		ask.Password = strings.TrimSpace(ask.Password)
		if ask.Username == "" {
			ask.Username = "git"
		}
	}
	rpc, err := r.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return nil, err
	}
	got, err := rpc.FetchSource(ctx, ask)
	if err != nil {
		return nil, failure(k.Edges.Agent.Name, err)
	}
	if got.Failure != "" {
		return nil, &stepError{problem.Precondition("%s", got.Failure), "git fetch"}
	}
	return got, nil
}

// read plans the build of a repository that was fetched. Its images are those that the owner of the build can use at
// this time.
func (r runner) read(ctx context.Context, b *ent.ImageBuild, in input, got *agentpb.FetchSourceResponse) (*plan, error) {
	kind, known := recipe.KindOf(got.File)
	if !known {
		return nil, problem.Precondition("the name of %.100q does not say what it is: %s", got.File, recipe.KnownNames)
	}
	files, err := recipe.Archive(nil, got.ContainerFiles)
	if err != nil {
		return nil, malformed("git", err)
	}
	described, err := recipe.Read(kind, got.Text, in.Git.Base, files)
	if err != nil {
		return nil, malformed("git", err)
	}
	p := &plan{dockerfile: described.Dockerfile, input: in}
	p.input.Args = maps.Clone(described.Args)
	if p.input.Args == nil {
		p.input.Args = map[string]string{}
	}
	maps.Copy(p.input.Args, in.Args)
	if p.input.Context, err = recipe.Archive(nil, described.Files); err != nil {
		return nil, malformed("git", err)
	}
	owner, err := r.owner(ctx, b, in.Git.Within)
	if err != nil {
		return nil, err
	}
	if err := r.resolve(viewer.With(ctx, owner), p); err != nil {
		return nil, err
	}
	p.digest = p.sum([]string{in.Git.Address, got.Commit, in.Git.Directory})
	return p, nil
}

// owner returns the owner of a build with their present rights.
func (r runner) owner(ctx context.Context, b *ent.ImageBuild, within uuid.UUID) (*viewer.Viewer, error) {
	all, err := r.Users.Rights(ctx, []uuid.UUID{b.OwnerID})
	if err != nil {
		return nil, err
	}
	v := all[b.OwnerID]
	if v == nil {
		return nil, problem.Precondition("the owner of the build is not active")
	}
	v.Within = within
	return v, nil
}

// ofGit sets the columns of a build of a repository.
func ofGit(c *ent.ImageBuildCreate, g *repository) *ent.ImageBuildCreate {
	if g == nil {
		return c
	}
	return c.SetKind(imagebuild.KindGit).SetGitAddress(g.Address).SetGitRef(g.Ref).SetGitDirectory(g.Directory)
}
