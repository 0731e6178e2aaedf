package image

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imageversion"
	entregistry "github.com/berthhq/berth/ent/registry"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/store"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	managerstore "github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// sweepKind is the kind of the tasks that sweep the registry for images of sessions.
const sweepKind = "image.sweep"

const (
	// sweepGrace is longer than a push can take: a push token is valid for tokenLife.
	sweepGrace = tokenLife + time.Hour
	// oldUpload is the age of uploads that have ended early.
	oldUpload = 24 * time.Hour
	// sweepLimit is the time limit of one sweep, and the life of its token.
	sweepLimit = 6 * time.Hour
	// defaultUntagged is the rule of repositories without one.
	defaultUntagged = 7 * 24 * time.Hour
)

// SweepRegistryInput names the registry. A dry run frees nothing.
type SweepRegistryInput struct {
	ID     uuid.UUID
	DryRun *bool
}

// SweepRegistryPayload is the registry and the task that sweeps it.
type SweepRegistryPayload struct {
	Registry *ent.Registry
	Task     *ent.Task
}

// sweeping is the input of a task.
type sweeping struct {
	Registry uuid.UUID
	DryRun   bool
}

// SweepRegistry starts a task that frees what no image of the registry needs. If one has not ended, it
// returns that one.
func (s *Service) SweepRegistry(ctx context.Context, in SweepRegistryInput) (*SweepRegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := s.sweepable(r); err != nil {
		return nil, err
	}
	t, err := s.enqueueSweep(ctx, sweeping{r.ID, in.DryRun != nil && *in.DryRun}, func(*ent.Registry) bool { return true })
	if err != nil {
		return nil, err
	}
	return &SweepRegistryPayload{Registry: r, Task: t}, nil
}

// Sweepable reports whether a registry is the one for images of sessions.
func (s *Service) Sweepable(r *ent.Registry) bool { return s.own.Host != "" && r.Host == s.own.Host }

func (s *Service) sweepable(r *ent.Registry) error {
	if !s.Sweepable(r) {
		return problem.Precondition("registry %s is not the one for images of sessions: it frees its space by itself", r.Name).WithField("id")
	}
	return nil
}

// enqueueSweep starts a sweep if wanted says so of the locked registry.
func (s *Service) enqueueSweep(ctx context.Context, in sweeping, wanted func(*ent.Registry) bool) (t *ent.Task, err error) {
	if s.tasks == nil {
		return nil, problem.Precondition("this manager runs no tasks")
	}
	err = managerstore.InTx(ctx, s.client, func(tx *ent.Tx) error {
		system := viewer.SystemContext(ctx)
		r, err := tx.Registry.Query().Where(entregistry.ID(in.Registry)).ForUpdate().Only(system)
		if err != nil {
			return permit.Missing(err, "registry", "id")
		}
		if !wanted(r) {
			return nil
		}
		if t, err = unfinishedSweep(system, tx, in); err != nil {
			return fmt.Errorf("look for sweeps: %w", err)
		}
		if t == nil {
			title := "Sweep registry " + r.Name
			if in.DryRun {
				title += " (dry run)"
			}
			if t, err = s.tasks.Enqueue(ctx, tx, task.Wanted{Kind: sweepKind, Title: title, Input: in, Subject: r.ID}); err != nil {
				return err
			}
		}
		if r.SweepEvery == 0 || in.DryRun {
			return nil
		}
		return r.Update().SetSweepDueAt(clock.Now().Add(time.Duration(r.SweepEvery) * time.Second)).Exec(system)
	})
	if err != nil || t == nil {
		return nil, err
	}
	t = t.Unwrap()
	s.tasks.Wake(ctx, t.ID)
	return t, nil
}

// unfinishedSweep returns a task with the same input that has not ended, or nil.
func unfinishedSweep(ctx context.Context, tx *ent.Tx, in sweeping) (*ent.Task, error) {
	all, err := tx.Task.Query().Where(
		enttask.Kind(sweepKind), enttask.SubjectID(in.Registry), enttask.StatusIn(enttask.StatusWaiting, enttask.StatusRunning),
	).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		var has sweeping
		if json.Unmarshal(t.Input, &has) == nil && has == in {
			return t, nil
		}
	}
	return nil, nil
}

// startSweep starts a sweep that is due. The first one is due an interval after the registry appears.
func (s *Service) startSweep(ctx context.Context) error {
	if s.own.Host == "" {
		return nil
	}
	r, err := s.client.Registry.Query().Where(entregistry.Host(s.own.Host), entregistry.SweepEveryGT(0)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a sweep that is due: %w", err)
	}
	if r.SweepDueAt == nil {
		return r.Update().SetSweepDueAt(clock.Now().Add(time.Duration(r.SweepEvery) * time.Second)).Exec(ctx)
	}
	if r.SweepDueAt.After(clock.Now()) {
		return nil
	}
	_, err = s.enqueueSweep(ctx, sweeping{Registry: r.ID}, func(r *ent.Registry) bool {
		return r.SweepEvery > 0 && r.SweepDueAt != nil && !r.SweepDueAt.After(clock.Now())
	})
	return err
}

// sweeper runs the tasks.
type sweeper struct{ *Service }

// Run sweeps the registry. A sweep that was interrupted begins again, with what is left.
func (x sweeper) Run(ctx context.Context, p *task.Progress, input []byte) error {
	ctx, cancel := context.WithTimeout(viewer.SystemContext(ctx), sweepLimit)
	defer cancel()
	var in sweeping
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	done, err := x.sweep(ctx, p, in)
	result := "done"
	switch {
	case ctx.Err() != nil:
		result = "interrupted"
	case err != nil:
		result = "failed"
	}
	x.meter.sweeps.WithLabelValues(result).Inc()
	if err != nil {
		return err
	}
	if !in.DryRun {
		x.meter.swept.Add(float64(done.FreedBytes))
	}
	x.meter.stored.Set(float64(done.StoredBytes))
	x.meter.free.Set(float64(done.FreeBytes))
	return nil
}

func (s *Service) sweep(ctx context.Context, p *task.Progress, in sweeping) (*report.Sweep, error) {
	r, err := s.client.Registry.Get(ctx, in.Registry)
	if err != nil {
		return nil, permit.Missing(err, "registry", "")
	}
	if err := s.sweepable(r); err != nil {
		return nil, err
	}
	o, err := s.sweepOptions(ctx, r)
	if err != nil {
		return nil, err
	}
	o.DryRun = in.DryRun
	token, err := s.own.Key.Sign(pushtoken.Grant{Maintain: true, Expires: time.Now().Add(sweepLimit)})
	if err != nil {
		return nil, err
	}
	scheme := "https://"
	if r.PlainHTTP {
		scheme = "http://"
	}
	got, err := registry.Sweep(ctx, scheme+r.Host, token, o)
	switch {
	case errdefs.IsFailedPrecondition(err):
		return nil, problem.Precondition("registry %s cannot be swept: %s", r.Name, reason(err)).Because(err)
	case err != nil:
		return nil, problem.Unavailable("sweep registry %s: %v", r.Name, err).Because(err)
	}
	done := &report.Sweep{
		At: clock.Now(), DryRun: got.DryRun, Repositories: got.Repositories, Manifests: got.Manifests, Blobs: got.Blobs, Uploads: got.Uploads,
		FreedBytes: got.FreedBytes, StoredBytes: got.StoredBytes, FreeBytes: got.FreeBytes, Unclear: got.Unclear, UnclearIn: got.UnclearIn,
	}
	if err := s.client.Registry.UpdateOneID(r.ID).SetLastSweep(done).Exec(ctx); err != nil {
		return nil, fmt.Errorf("store the report of a sweep: %w", err)
	}
	p.Remark(describeSweep(done))
	return done, nil
}

func describeSweep(d *report.Sweep) string {
	verb := "Freed"
	if d.DryRun {
		verb = "Would free"
	}
	text := fmt.Sprintf("%s %s bytes: %d objects, %d manifests, %d uploads. %d bytes stay, %d are free on the disk.",
		verb, fmt.Sprint(d.FreedBytes), d.Blobs, d.Manifests, d.Uploads, d.StoredBytes, d.FreeBytes)
	if d.Unclear > 0 {
		text += fmt.Sprintf(" %d manifests cannot be read, such as one of %s; their repositories were left out.", d.Unclear, d.UnclearIn)
	}
	return text
}

// sweepOptions says what stays: the contents of images and their versions, and what the rules keep.
func (s *Service) sweepOptions(ctx context.Context, r *ent.Registry) (store.Options, error) {
	o := store.Options{Grace: s.sweepGrace, Uploads: oldUpload, Keep: map[string]bool{}, Rules: []store.Rule{{Untagged: defaultUntagged}}}
	for _, rule := range r.Retention {
		o.Rules = append(o.Rules, store.Rule{Prefix: rule.Prefix, Untagged: time.Duration(rule.UntaggedDays) * 24 * time.Hour, Versions: rule.Versions})
	}
	images, err := s.client.Image.Query().Where(entimage.RegistryID(r.ID), entimage.StatusEQ(entimage.StatusAlive)).
		Select(entimage.FieldID, entimage.FieldName, entimage.FieldDigest).All(ctx)
	if err != nil {
		return o, fmt.Errorf("read images: %w", err)
	}
	names := make(map[uuid.UUID]string, len(images))
	for _, i := range images {
		names[i.ID] = repositoryOf(i.Name)
		o.Keep[names[i.ID]+"@"+i.Digest] = true
	}
	versions, err := s.client.ImageVersion.Query().Where(imageversion.HasImageWith(entimage.RegistryID(r.ID), entimage.StatusEQ(entimage.StatusAlive)),
		// Former commits are history: their bytes count towards no limit, so that the rules of untagged versions are for them.
		imageversion.SessionIDIsNil()).
		Select(imageversion.FieldImageID, imageversion.FieldDigest).All(ctx)
	if err != nil {
		return o, fmt.Errorf("read versions: %w", err)
	}
	for _, v := range versions {
		if name := names[v.ImageID]; name != "" {
			o.Keep[name+"@"+v.Digest] = true
		}
	}
	return o, nil
}

// Limits of retention.
const (
	maxRules     = 100
	maxUntagged  = 3650 // days
	maxKept      = 1000 // versions
	minSweep     = 3600 // seconds
	maxSweep     = 90 * 86400
	maxPrefixLen = 255
)

func (in *RegistrySettings) checkRetention() error {
	if every := in.SweepEvery; every != nil && *every != 0 && (*every < minSweep || *every > maxSweep) {
		return problem.Invalid("sweepEvery", "%d seconds is not 0 or between %d and %d", *every, minSweep, maxSweep).
			WithLimit(fmt.Sprintf("%d..%d", minSweep, maxSweep))
	}
	if len(in.Retention) > maxRules {
		return problem.Invalid("retention", "has %d rules, more than %d", len(in.Retention), maxRules).WithLimit(fmt.Sprint(maxRules))
	}
	seen := map[string]bool{}
	for _, r := range in.Retention {
		if err := naming.Line("retention", r.Prefix, maxPrefixLen); err != nil {
			return err
		}
		switch {
		case seen[r.Prefix]:
			return problem.Invalid("retention", "has two rules for the prefix %q", r.Prefix)
		case r.UntaggedDays < 1 || r.UntaggedDays > maxUntagged:
			return problem.Invalid("retention", "untaggedDays %d of the prefix %q is not between 1 and %d", r.UntaggedDays, r.Prefix, maxUntagged).WithLimit(fmt.Sprintf("1..%d", maxUntagged))
		case r.Versions != nil && (*r.Versions < 0 || *r.Versions > maxKept):
			return problem.Invalid("retention", "versions %d of the prefix %q is not between 0 and %d", *r.Versions, r.Prefix, maxKept).WithLimit(fmt.Sprintf("0..%d", maxKept))
		}
		seen[r.Prefix] = true
	}
	return nil
}
