package image_test

import (
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"

	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/image"
)

func (o *ownBed) sweep(t *testing.T, dry bool) *report.Sweep {
	t.Helper()
	out, err := o.SweepRegistry(o.root, image.SweepRegistryInput{ID: o.reg.ID, DryRun: &dry})
	if err != nil {
		t.Fatal(err)
	}
	if got := o.run(t, out.Task); got.Status != enttask.StatusDone {
		t.Fatalf("the sweep is %s: %s", got.Status, got.Message)
	}
	return o.Client.Registry.GetX(o.root, o.reg.ID).LastSweep
}

// A sweep frees what no image and no version needs. A dry run says the same and removes nothing.
func TestSweepRegistry(t *testing.T) {
	o := newOwnBed(t)
	days := []report.RetentionRule{{Prefix: "team/", UntaggedDays: 1, Versions: new(int)}}
	if _, err := o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: image.RegistrySettings{Retention: days}}); err != nil {
		t.Fatal(err)
	}
	former := o.put(t, "team/tool", "1")
	o.scan(t, o.reg)
	current := o.put(t, "team/tool", "1") // the tag moves; the former version can be rolled back to
	o.scan(t, o.reg)
	lost := o.put(t, "team/other", "1")
	o.put(t, "team/other", "1") // moves before any scan has seen it
	exists := func(path, digest string) bool {
		_, err := ggcr.Head(o.repository(t, path).Digest(digest))
		return err == nil
	}
	dry := o.sweep(t, true)
	if !dry.DryRun || dry.Manifests != 1 || dry.FreedBytes == 0 || !exists("team/other", lost.Digest.String()) {
		t.Errorf("the dry run reports %+v", dry)
	}
	done := o.sweep(t, false)
	if done.DryRun || done.FreedBytes != dry.FreedBytes || done.Manifests != 1 || done.FreeBytes == 0 {
		t.Errorf("the sweep reports %+v after %+v", done, dry)
	}
	if exists("team/other", lost.Digest.String()) || !exists("team/tool", former.Digest.String()) || !exists("team/tool", current.Digest.String()) {
		t.Error("the sweep has removed the wrong version")
	}
	if _, err := o.RollbackImage(o.root, image.RollbackImageInput{ID: o.image(t, "team/tool:1").ID}); err != nil {
		t.Errorf("roll back after a sweep: %v", err)
	}
}

func TestSweepsThatAreRefused(t *testing.T) {
	o := newOwnBed(t)
	other := add(t, o.root, o.Service, "other", "registry.example")
	_, err := o.SweepRegistry(o.root, image.SweepRegistryInput{ID: other.ID})
	want(t, err, problem.CodeFailedPrecondition, "id")
	_, err = o.SweepRegistry(o.As(t, o.A.Admin), image.SweepRegistryInput{ID: o.reg.ID})
	want(t, err, problem.CodePermissionDenied, "")
	soon, many := 60, 5000
	for field, s := range map[string]image.RegistrySettings{
		"sweepEvery": {SweepEvery: &soon},
		"retention":  {Retention: []report.RetentionRule{{Prefix: "x", UntaggedDays: 0}}},
	} {
		_, err := o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: s})
		want(t, err, problem.CodeInvalidArgument, field)
	}
	_, err = o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: image.RegistrySettings{
		Retention: []report.RetentionRule{{Prefix: "x", UntaggedDays: 1, Versions: &many}},
	}})
	want(t, err, problem.CodeInvalidArgument, "retention")
	_, err = o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: image.RegistrySettings{
		Retention: []report.RetentionRule{{Prefix: "x", UntaggedDays: 1}, {Prefix: "x", UntaggedDays: 2}},
	}})
	want(t, err, problem.CodeInvalidArgument, "retention")
}

// A dry run that waits is not taken for the sweep that is asked for, and the same one is not started twice.
func TestSweepsThatWait(t *testing.T) {
	o := newOwnBed(t)
	ids := map[string]bool{}
	for _, dry := range []bool{true, false, true, false} {
		out, err := o.SweepRegistry(o.root, image.SweepRegistryInput{ID: o.reg.ID, DryRun: &dry})
		if err != nil {
			t.Fatal(err)
		}
		ids[out.Task.ID.String()] = true
	}
	if len(ids) != 2 {
		t.Errorf("%d tasks were started, want a dry run and a sweep", len(ids))
	}
}

// The leader starts the sweeps that are due, once each.
func TestScheduledSweep(t *testing.T) {
	o := newOwnBed(t)
	o.Client.Registry.UpdateOneID(o.reg.ID).SetSweepDueAt(o.reg.CreatedAt).ExecX(o.root)
	stop := o.lead(t)
	defer stop()
	go o.Lead(t.Context())
	wait.For(t, func() error {
		r := o.Client.Registry.GetX(o.root, o.reg.ID)
		if r.LastSweep == nil {
			return problem.Unavailable("no sweep yet")
		}
		return nil
	})
	if n := o.Client.Task.Query().Where(enttask.Kind("image.sweep")).CountX(o.root); n != 1 {
		t.Errorf("%d sweeps were started", n)
	}
	got := o.Client.Task.Query().Where(enttask.Kind("image.sweep")).FirstX(o.root)
	if !strings.HasPrefix(got.Message, "Freed 0 bytes") && got.EndedAt != nil {
		t.Errorf("the task says %q", got.Message)
	}
}
