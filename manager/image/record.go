package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
)

// maxLabels limits the labels that are stored of one image, in bytes.
const maxLabels = 64 << 10

// maxEnvironment limits the environment that is stored of one image, in bytes.
const maxEnvironment = 64 << 10

// tagged is a tag and its images, one for each architecture.
type tagged struct {
	name   string
	images []remote.Image
}

// recorded is what became of a tag.
type recorded struct {
	outcome scanresult.Outcome // new, moved or unchanged
	rows    []*ent.Image
}

// record stores the images of tags, one row for each architecture, by name. An existing row keeps
// its id; a pinned one also keeps its digest. The labels must be storable.
func (s *Service) record(ctx context.Context, c *ent.Client, r *ent.Registry, tags []tagged) (map[string]recorded, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	references := make([]string, len(tags))
	for i, t := range tags {
		references[i] = r.Host + "/" + t.name
	}
	before, err := c.Image.Query().Where(entimage.ReferenceIn(references...)).Order(entimage.ByID()).ForUpdate().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock images: %w", err)
	}
	known := map[pair]*ent.Image{}
	for _, i := range before {
		known[pair{i.Reference, i.Architecture}] = i
	}
	out := map[string]recorded{}
	met, contents := map[pair]remote.Image{}, []*ent.ImageCreate(nil)
	for i, t := range tags {
		outcome := scanresult.OutcomeUnchanged
		for _, f := range t.images {
			key := pair{references[i], f.Architecture}
			if _, twice := met[key]; twice { // variants of one architecture: the first is the most basic
				continue
			}
			met[key] = f
			old := known[key]
			switch {
			case old == nil || old.Status != entimage.StatusAlive:
				outcome = scanresult.OutcomeNew
			case TagDigest(old) != f.Digest && outcome != scanresult.OutcomeNew:
				outcome = scanresult.OutcomeMoved
			}
			contents = append(contents, s.row(c, r, t.name, f, old))
		}
		out[t.name] = recorded{outcome: outcome}
	}
	rows, err := s.upsert(ctx, c, references, contents, before, met)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		one := out[row.Name]
		one.rows = append(one.rows, row)
		out[row.Name] = one
	}
	return out, nil
}

// Moved reports whether the tag of an image has another digest than the image.
func Moved(i *ent.Image) bool { return TagDigest(i) != i.Digest }

// TagDigest returns the digest that the tag of an image had when it was read last.
func TagDigest(i *ent.Image) string {
	if i.TagDigest == "" { // stored before tags were followed
		return i.Digest
	}
	return i.TagDigest
}

// row returns the row of an image that was found. old is the existing one, or nil.
func (s *Service) row(c *ent.Client, r *ent.Registry, name string, f remote.Image, old *ent.Image) *ent.ImageCreate {
	row := c.Image.Create().SetReference(r.Host + "/" + name).SetName(name).SetArchitecture(f.Architecture).
		SetDigest(f.Digest).SetTagDigest(f.Digest).SetSizeBytes(f.Size).SetLabels(Labels(f)).SetSignedBy(f.SignedBy).
		SetStatus(entimage.StatusAlive).SetRegistryID(r.ID)
	if old != nil && pinned(r, old) {
		row.SetDigest(old.Digest).SetSizeBytes(old.SizeBytes).SetLabels(old.Labels)
		if old.Digest != f.Digest {
			row.SetSignedBy(old.SignedBy)
		}
	}
	return row
}

// pinned reports whether an image keeps its digest when its tag moves.
func pinned(r *ent.Registry, i *ent.Image) bool {
	return i.TagPolicy == entimage.TagPolicyPinned ||
		i.TagPolicy == entimage.TagPolicyRegistry && r.TagPolicy == registry.TagPolicyPinned
}

// upsert stores rows and the contents that they have, and returns those that exist now. Rows of
// architectures that a tag no longer has are gone.
func (s *Service) upsert(ctx context.Context, c *ent.Client, references []string, rows []*ent.ImageCreate, before []*ent.Image, met map[pair]remote.Image) ([]*ent.Image, error) {
	err := c.Image.CreateBulk(rows...).
		OnConflict(sql.ConflictColumns(entimage.FieldReference, entimage.FieldArchitecture)).
		Update(func(u *ent.ImageUpsert) {
			u.UpdateDigest().UpdateTagDigest().UpdateSizeBytes().UpdateLabels().UpdateSignedBy().UpdateStatus().UpdateRegistryID()
			u.SetIgnore(entimage.FieldID)
		}).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("store images: %w", err)
	}
	var lost []uuid.UUID
	for _, i := range before {
		if _, is := met[pair{i.Reference, i.Architecture}]; !is && i.Status == entimage.StatusAlive {
			lost = append(lost, i.ID)
		}
	}
	if len(lost) > 0 {
		if err := c.Image.Update().Where(entimage.IDIn(lost...)).SetStatus(entimage.StatusGone).Exec(ctx); err != nil {
			return nil, fmt.Errorf("mark images gone: %w", err)
		}
	}
	now, err := c.Image.Query().Where(entimage.ReferenceIn(references...), entimage.StatusEQ(entimage.StatusAlive)).
		Order(entimage.ByReference(), entimage.ByArchitecture()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}
	return now, s.keepVersions(ctx, c, now, before, met)
}

// Labels returns the labels of an image, never nil.
func Labels(f remote.Image) map[string]string {
	if f.Labels == nil {
		return map[string]string{}
	}
	return f.Labels
}

// storableAll returns an error for images whose labels or variables cannot be stored.
func storableAll(images []remote.Image) error {
	for _, f := range images {
		if err := storable(f.Labels); err != nil {
			return err
		}
		size := 0
		for _, e := range f.Environment {
			size += len(e)
			if !utf8.ValidString(e) || strings.ContainsRune(e, 0) {
				return fmt.Errorf("a variable of its environment is not UTF-8 text without NUL: %w", errdefs.ErrInvalidArgument)
			}
		}
		if size > maxEnvironment {
			return fmt.Errorf("its environment has %d bytes, more than %d: %w", size, maxEnvironment, errdefs.ErrInvalidArgument)
		}
	}
	return nil
}

// storable returns an error for labels that the database cannot store, or that are too long.
func storable(labels map[string]string) error {
	size := 0
	for k, v := range labels {
		size += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) || strings.ContainsRune(k+v, 0) {
			return fmt.Errorf("label %q is not UTF-8 text without NUL: %w", k, errdefs.ErrInvalidArgument)
		}
	}
	if size > maxLabels {
		return fmt.Errorf("labels have %d bytes, more than %d: %w", size, maxLabels, errdefs.ErrInvalidArgument)
	}
	return nil
}

// pair is the unique key of a row.
type pair struct{ reference, architecture string }

// explain changes the class of a registry's error: its rejection of our credentials does not
// mean that the viewer is not logged in.
func explain(r *ent.Registry, what string, err error) error {
	busy := (*remote.Busy)(nil)
	switch {
	case errdefs.IsNotFound(err):
		return problem.NotFound(what).Because(err)
	case errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return problem.Precondition("registry %s refuses access to %s; check its credentials", r.Name, what).Because(err)
	case errdefs.IsNotImplemented(err):
		return problem.Precondition("registry %s cannot list its images; register them one by one", r.Name).Because(err)
	case errors.As(err, &busy):
		return problem.Unavailable("registry %s asks to wait %s", r.Name, busy.After).Because(err)
	case errdefs.IsUnavailable(err):
		return problem.Unavailable("%s does not answer as an image registry", r.Name).Because(err)
	case errdefs.IsInvalidArgument(err), errdefs.IsFailedPrecondition(err):
		return problem.Precondition("%s of registry %s cannot be used: %s", what, r.Name, reason(err)).Because(err)
	}
	return err
}

// reason returns the text of an error without the classes of errors at its end.
func reason(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "read image "); ok { // what the sentence begins with
		_, text, _ = strings.Cut(rest, ": ")
	}
	for _, class := range []error{errdefs.ErrInvalidArgument, errdefs.ErrFailedPrecondition} {
		text = strings.ReplaceAll(strings.TrimSuffix(text, ": "+class.Error()), ": "+class.Error()+":", ":")
	}
	return text
}
