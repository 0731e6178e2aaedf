package image_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/image"
)

// TestTagMoves moves a tag under images that follow it and images that are pinned, goes back, and
// follows again.
func TestTagMoves(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	first := st.put(t, "tool:1", map[string]string{"v": "1"}, "amd64")["amd64"]
	r := add(t, b.root, b.Service, "local", st.host)
	b.scan(t, r)
	i := b.Client.Image.Query().OnlyX(b.root)
	is := func(what, digest, tag string, moved bool) {
		t.Helper()
		if now := b.Client.Image.GetX(b.root, i.ID); now.Digest != digest || image.TagDigest(now) != tag || image.Moved(now) != moved {
			t.Errorf("%s: %s, tag %s, want %s and %s", what, now.Digest, now.TagDigest, digest, tag)
		}
	}
	second := st.put(t, "tool:1", map[string]string{"v": "2"}, "amd64")["amd64"]
	b.scan(t, r)
	is("followed", second, second, false)
	all, err := b.VersionsOf(b.root, []uuid.UUID{i.ID})
	change := image.Change(all[i.ID], nil, nil)
	if err != nil || change == nil || change.From != first || change.To != second || change.LayersAdded != 2 || len(change.Labels) != 1 || *change.Labels[0].After != "2" {
		t.Errorf("change %+v, %v", change, err)
	}

	if _, err := b.RollbackImage(b.As(t, b.A.Admin), image.RollbackImageInput{ID: i.ID}); err == nil {
		t.Error("a domain admin rolls back")
	}
	out, err := b.RollbackImage(b.root, image.RollbackImageInput{ID: i.ID})
	if err != nil || out.Image.Digest != first || out.Image.Labels["v"] != "1" || out.Image.TagPolicy != entimage.TagPolicyPinned {
		t.Fatalf("rolled back to %v, %v", out, err)
	}
	is("rolled back", first, second, true)
	b.scan(t, r)
	is("after a scan", first, second, true)
	third := st.put(t, "tool:1", map[string]string{"v": "3"}, "amd64")["amd64"]
	b.scan(t, r)
	is("pinned", first, third, true)
	if got := b.results(r)["tool:1"]; got != "moved" {
		t.Errorf("the result is %s", got)
	}
	if all, err = b.VersionsOf(b.root, []uuid.UUID{i.ID}); err != nil || len(all[i.ID]) != 3 || all[i.ID][0].Digest != third {
		t.Errorf("versions %v, %v", all, err)
	}
	other := "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	_, err = b.RollbackImage(b.root, image.RollbackImageInput{ID: i.ID, Digest: &other})
	want(t, err, problem.CodeNotFound, "digest")
	other = "../../etc"
	_, err = b.RollbackImage(b.root, image.RollbackImageInput{ID: i.ID, Digest: &other})
	want(t, err, problem.CodeInvalidArgument, "digest")
	_, err = b.RollbackImage(b.root, image.RollbackImageInput{ID: i.ID, Digest: &first})
	want(t, err, problem.CodeFailedPrecondition, "digest")

	follow, text := entimage.TagPolicyRegistry, "Use tool:2."
	out, err = b.UpdateImage(b.root, image.UpdateImageInput{ID: i.ID, TagPolicy: &follow, Deprecated: &text})
	if err != nil || out.Image.Digest != third || out.Image.Deprecated != text {
		t.Errorf("follows again: %v, %v", out, err)
	}
	pinned := registry.TagPolicyPinned
	in := image.UpdateRegistryInput{ID: r.ID}
	in.TagPolicy = &pinned
	if _, err := b.UpdateRegistry(b.root, in); err != nil {
		t.Fatal(err)
	}
	fourth := st.put(t, "tool:1", nil, "amd64")["amd64"]
	b.scan(t, r)
	is("pinned by its registry", third, fourth, true)
	if now := b.Client.Image.GetX(b.root, i.ID); now.Deprecated != text || now.Labels["v"] != "3" {
		t.Errorf("the scan changed %v", now)
	}
}

func TestCompare(t *testing.T) {
	from := &ent.ImageVersion{
		Digest: "a", Labels: map[string]string{"same": "1", "gone": "1", "other": "1"}, Environment: []string{"PATH=/bin", "A=1"},
		Layers: []report.Layer{{Digest: "base", Size: 100}, {Digest: "old", Size: 10}},
	}
	to := &ent.ImageVersion{
		Digest: "b", Labels: map[string]string{"same": "1", "other": "2"}, Environment: []string{"PATH=/bin", "B="},
		Layers: []report.Layer{{Digest: "base", Size: 100}, {Digest: "new", Size: 20}, {Digest: "new2", Size: 5}},
	}
	c := image.Compare(from, to)
	if c.LayersKept != 1 || c.BytesKept != 100 || c.LayersAdded != 2 || c.BytesAdded != 25 || c.LayersRemoved != 1 {
		t.Errorf("layers %+v", c)
	}
	if len(c.Labels) != 2 || c.Labels[0].Name != "gone" || c.Labels[0].After != nil || *c.Labels[1].After != "2" {
		t.Errorf("labels %+v", c.Labels)
	}
	if len(c.Environment) != 2 || c.Environment[0].Name != "A" || c.Environment[1].Before != nil || *c.Environment[1].After != "" {
		t.Errorf("environment %+v", c.Environment)
	}
	if image.Compare(&ent.ImageVersion{}, to) != nil {
		t.Error("compares with unknown layers")
	}
}
