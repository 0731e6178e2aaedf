package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/groupgrant"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/slot"
)

// wish is a request that has been checked and completed.
type wish struct {
	owner, project, domain, group uuid.UUID

	groups      []uuid.UUID // among which group is chosen
	name        string
	kind        session.Type
	image       *ent.Image
	slots       resource.Slots // of each kernel
	kernels     int
	command     []string
	bootstrap   string
	environment map[string]string
	mounts      []mount
	priority    int
	shmBytes    int64
	diskBytes   int64 // of each kernel
	key         *string
	startsAt    *time.Time
	needed      []*ent.Session // that have to succeed first
	agents      []uuid.UUID    // to run on
	strict      bool           // or nowhere
	terms

	member  bool           // of the project, rather than by a role
	keypair *uuid.UUID     // that asks
	limits  []policy.Limit // that bind it
	stored  bool           // it is among what waits
}

type mount struct {
	folder   uuid.UUID
	target   string
	subpath  string
	readOnly bool
	// readOnlyWanted: not only because they may not write
	readOnlyWanted bool
}

const defaultPriority = 10

// inspection looks at a part of an input.
type inspection = func(context.Context, *viewer.Viewer, CreateSessionInput, *wish) error

func newWish(v *viewer.Viewer, in CreateSessionInput) *wish {
	w := &wish{owner: v.User, command: in.Command, environment: in.Environment, priority: defaultPriority, key: in.IdempotencyKey}
	w.kind = session.TypeInteractive
	if len(in.Command) > 0 {
		w.kind = session.TypeBatch
	}
	if in.Type != nil {
		w.kind = *in.Type
	}
	return w
}

// check turns an input into a wish or says which field is wrong.
func (s *Service) check(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (*wish, error) {
	w := newWish(v, in)
	all := []inspection{
		s.checkBasics, s.checkWhen, s.checkPlace, s.checkTerms, s.checkAgents, s.checkImage, s.checkSlots, s.checkMounts, s.checkAutoMounts, s.checkPolicies, s.checkDisk,
	}
	if plain(in) {
		all = []inspection{s.checkBasics, s.checkWhen, s.checkShared, s.checkTerms, s.checkAgents, s.checkDisk}
	}
	for _, do := range all {
		if err := do(ctx, v, in, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (s *Service) checkBasics(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) error {
	w.name = "session-" + strings.ToLower(rand.Text()[:8])
	if in.Name != nil {
		w.name = *in.Name
	}
	if err := checkName(w.name); err != nil {
		return err
	}
	if w.kind == session.TypeBatch && len(in.Command) == 0 {
		return problem.Invalid("command", "must not be empty for a batch session")
	}
	if w.command == nil {
		w.command = []string{}
	}
	for i, arg := range w.command {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			return problem.Invalid(fmt.Sprintf("command[%d]", i), "must not be empty or contain a zero byte")
		}
	}
	if w.key != nil && (*w.key == "" || len(*w.key) > maxKey || strings.ContainsRune(*w.key, 0)) {
		return problem.Invalid("idempotencyKey", "must have 1 to %d bytes", maxKey).WithLimit(fmt.Sprintf("1..%d", maxKey))
	}
	if n := size(in.Command); n > maxCommand {
		return problem.Invalid("command", "has %d bytes", n).WithLimit(fmt.Sprint(maxCommand))
	}
	if in.BootstrapScript != nil {
		w.bootstrap = *in.BootstrapScript
	}
	if len(w.bootstrap) > maxBootstrap || strings.ContainsRune(w.bootstrap, 0) {
		return problem.Invalid("bootstrapScript", "must be text of at most 64 KiB").WithLimit(fmt.Sprint(maxBootstrap))
	}
	if in.Priority != nil {
		w.priority = *in.Priority
	}
	if w.priority < 0 || w.priority > 100 {
		return problem.Invalid("priority", "%d is not between 0 and 100", w.priority).WithLimit("0..100")
	}
	if in.ShmBytes != nil {
		w.shmBytes = *in.ShmBytes
	}
	if w.shmBytes < 0 || w.shmBytes > maxShm {
		return problem.Invalid("shmBytes", "must be between 0 and 1 TiB").WithLimit(fmt.Sprint(int64(maxShm)))
	}
	return checkEnvironment(w)
}

func checkEnvironment(w *wish) error {
	if w.environment == nil {
		w.environment = map[string]string{}
	}
	total := 0
	for k, val := range w.environment {
		total += len(k) + len(val) + 2
		if !naming.IsVariable(k) || strings.ContainsRune(val, 0) {
			return problem.Invalid("environment", "%q cannot be an environment variable", k)
		}
		if strings.HasPrefix(k, "BERTH_") {
			return problem.Invalid("environment", "%s: names that begin with BERTH_ are set by the platform", k)
		}
	}
	if total > maxEnvironment {
		return problem.Invalid("environment", "has %d bytes", total).WithLimit(fmt.Sprint(maxEnvironment))
	}
	return nil
}

// checkPlace finds the project and the resource group.
func (s *Service) checkPlace(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, w *wish) (err error) {
	if err := s.checkProject(ctx, v, in.Project, w); err != nil {
		return err
	}
	w.groups, err = s.groups(ctx, v, in.ResourceGroup, w)
	return err
}

// checkProject finds the project, in which the viewer has to be allowed to start
// sessions.
func (s *Service) checkProject(ctx context.Context, v *viewer.Viewer, named *uuid.UUID, w *wish) error {
	q := s.Client.Project.Query().Where(project.Active(true))
	switch {
	case named != nil:
		q.Where(project.ID(*named))
	case len(v.Projects) == 0:
		return problem.Precondition("you are in no project; ask an administrator to add you to one").WithField("project")
	case len(v.Projects) > 1:
		return problem.Invalid("project", "must be named, as you are in several projects")
	default:
		q.Where(project.ID(v.Projects[0]))
	}
	p, err := q.Only(ctx)
	if err != nil {
		return permit.Missing(err, "project", "project")
	}
	on := access.Object{Domain: p.DomainID, Project: p.ID}
	if v.MemberOf(p.ID) {
		on.Owner, w.member = v.User, true // what a member starts in their project is theirs
	} else if !v.May(access.Create, access.Session, on) {
		return problem.NotFound("project").WithField("project")
	}
	if _, err := permit.Check(ctx, access.Create, access.Session, on); err != nil {
		return err
	}
	w.project, w.domain = p.ID, p.DomainID
	return nil
}

// groups finds the resource groups that the session may run in: the one that was
// named, or all that are open to the viewer in this project and allow the type,
// the oldest first. Superadmins use all.
func (s *Service) groups(ctx context.Context, v *viewer.Viewer, named *uuid.UUID, w *wish) ([]uuid.UUID, error) {
	q := s.Client.ResourceGroup.Query().Where(resourcegroup.Active(true)).Order(resourcegroup.ByCreatedAt(), resourcegroup.ByID())
	if named != nil {
		q.Where(resourcegroup.ID(*named))
	}
	if !v.Superadmin() {
		q.Where(resourcegroup.Or(resourcegroup.Public(true), resourcegroup.HasGrantsWith(groupgrant.Or(
			groupgrant.DomainIDIn(v.Domain, w.domain), groupgrant.ProjectID(w.project), groupgrant.UserID(v.User),
			groupgrant.HasKeypairWith(keypair.UserID(v.User)),
		))))
	}
	open, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find resource groups: %w", err)
	}
	if len(open) == 0 {
		return nil, problem.NotFound("resource group").WithField("resourceGroup")
	}
	var list []uuid.UUID
	for _, g := range open {
		if slices.Contains(g.SessionTypes, string(w.kind)) {
			list = append(list, g.ID)
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case named == nil:
		return nil, problem.Invalid("type", "no resource group open to you takes %s sessions", w.kind)
	}
	allowed := strings.Join(open[0].SessionTypes, ", ")
	return nil, problem.Invalid("type", "resource group %s takes %s sessions only", open[0].Name, allowed).WithLimit(allowed)
}

func (s *Service) checkImage(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) (err error) {
	w.image, err = s.Images.Resolve(ctx, in.Image)
	return err
}

// checkSlots refuses what the image or the agents could never do with, and settles the
// group.
func (s *Service) checkSlots(ctx context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) (err error) {
	if err := slot.Check(ctx, s.Client, in.Slots); err != nil {
		return err
	}
	if w.kernels = 1; in.Kernels != nil {
		w.kernels = *in.Kernels
	}
	if w.kernels < 1 || w.kernels > maxKernels {
		return problem.Invalid("kernels", "must be between 1 and %d", maxKernels).WithLimit(fmt.Sprintf("1..%d", maxKernels))
	}
	w.slots = slot.Complete(in.Slots)
	slot.Fill(w.slots, in.Slots, slot.Minimum(w.image))
	if err := slot.CheckMinimum(w.image, w.slots); err != nil {
		return err
	}
	w.group, err = s.Fitter.Choose(ctx, w.groups, w.need())
	return err
}

// need is what the session asks of agents.
func (w *wish) need() Need {
	return Need{Architecture: w.image.Architecture, Slots: w.slots, Kernels: w.kernels, Only: w.only()}
}

// total is what all kernels ask for.
func (w *wish) total() resource.Slots {
	total := resource.Slots{}
	for range w.kernels {
		total.Add(w.slots)
	}
	return total
}

func (s *Service) checkMounts(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, w *wish) error {
	if len(in.Mounts) > maxMounts {
		return problem.Invalid("mounts", "has %d folders, which is too many", len(in.Mounts)).WithLimit(fmt.Sprint(maxMounts))
	}
	seen := map[string]bool{}
	for i, m := range in.Mounts {
		field := fmt.Sprintf("mounts[%d]", i)
		f, err := s.folder(ctx, v, w, field+".vfolder", m.Vfolder)
		if err != nil {
			return err
		}
		if f == nil {
			return problem.NotFound("folder " + m.Vfolder).WithField(field + ".vfolder")
		}
		readOnly, err := readOnly(ctx, field, f, m.ReadOnly)
		if err != nil {
			return err
		}
		need := []access.VolumePermission{access.VolumeMount}
		if !readOnly {
			need = append(need, access.VolumeUpload) // what is mounted for writing is filled through it
		}
		if err := s.Volumes.Allow(ctx, f, need...); err != nil {
			return err
		}
		out := mount{folder: f.ID, target: "/home/work/" + f.Name, readOnly: readOnly, readOnlyWanted: m.ReadOnly != nil && *m.ReadOnly}
		if m.Target != nil && *m.Target != "" {
			out.target = *m.Target
		}
		if err := checkTarget(field+".target", out.target); err != nil {
			return err
		}
		if seen[out.target] {
			return problem.Invalid(field+".target", "%s is mounted twice", out.target)
		}
		seen[out.target] = true
		if m.Subpath != nil && *m.Subpath != "" {
			out.subpath = path.Clean(*m.Subpath)
			if path.IsAbs(out.subpath) || strings.ContainsRune(out.subpath, 0) || len(out.subpath) > 4096 || out.subpath == ".." || strings.HasPrefix(out.subpath, "../") {
				return problem.Invalid(field+".subpath", "must lie below the folder")
			}
		}
		w.mounts = append(w.mounts, out)
	}
	return nil
}

// readOnly tells how a folder is mounted: for writing, unless that is not wanted or
// it is only for reading to the viewer.
func readOnly(ctx context.Context, field string, f *ent.Vfolder, want *bool) (bool, error) {
	if err := permit.Inside(ctx, access.Special, f); err != nil {
		return false, err
	}
	if want != nil && *want {
		return true, nil
	}
	if permit.Inside(ctx, access.Write, f) == nil {
		return false, nil
	}
	if want != nil {
		return false, problem.Forbidden("you may only read folder %s", f.Name).WithField(field + ".readOnly")
	}
	return true, nil
}

// folder finds a ready folder by id or name: one's own comes before one of the
// project of the same name, and that before one that is shared with the viewer.
func (s *Service) folder(ctx context.Context, v *viewer.Viewer, w *wish, field, ref string) (*ent.Vfolder, error) {
	// A folder has a path once it is there; an empty one would be the volume's root.
	q := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusReady), vfolder.PathNEQ(""))
	if id, err := uuid.Parse(ref); err == nil {
		q.Where(vfolder.ID(id))
	} else {
		q.Where(vfolder.Name(ref))
	}
	shared := slices.Collect(maps.Keys(v.Shares))
	q.Where(vfolder.Or(vfolder.OwnerID(v.User), vfolder.ProjectID(w.project), vfolder.IDIn(shared...)))
	all, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find folder %s: %w", ref, err)
	}
	rank := func(f *ent.Vfolder) int {
		switch {
		case f.OwnerID != nil && *f.OwnerID == v.User:
			return 0
		case f.ProjectID != nil && *f.ProjectID == w.project:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *ent.Vfolder) int { return rank(a) - rank(b) })
	if len(all) == 0 {
		return nil, nil
	}
	if len(all) > 1 && rank(all[0]) == rank(all[1]) {
		return nil, problem.Invalid(field, "several folders named %s are shared with you: use the id of one", ref)
	}
	return all[0], nil
}

func size(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}
