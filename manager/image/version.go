package image

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imageversion"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// maxVersions is the number of versions that are kept of one image.
const maxVersions = 20

// keepVersions stores the contents that the tags of images have, beside those that they had. before
// are the rows as they were.
func (s *Service) keepVersions(ctx context.Context, c *ent.Client, now, before []*ent.Image, met map[pair]remote.Image) error {
	var rows []*ent.ImageVersionCreate
	var moved []uuid.UUID
	for _, old := range before {
		f, is := met[pair{old.Reference, old.Architecture}]
		if !is || TagDigest(old) == f.Digest {
			continue
		}
		moved = append(moved, old.ID)
		if old.Digest == f.Digest { // the tag is back; its version follows
			continue
		}
		// A row from before versions were kept has no version of its own digest.
		rows = append(rows, c.ImageVersion.Create().SetImageID(old.ID).SetDigest(old.Digest).SetSizeBytes(old.SizeBytes).
			SetLabels(old.Labels).SetSignedBy(old.SignedBy).SetCreatedAt(old.CreatedAt))
	}
	for _, i := range now {
		f, is := met[pair{i.Reference, i.Architecture}]
		if !is {
			continue
		}
		rows = append(rows, c.ImageVersion.Create().SetImageID(i.ID).SetDigest(f.Digest).SetSizeBytes(f.Size).
			SetLabels(Labels(f)).SetSignedBy(f.SignedBy).SetEnvironment(append([]string{}, f.Environment...)).SetLayers(f.Layers))
	}
	if len(rows) == 0 {
		return nil
	}
	err := c.ImageVersion.CreateBulk(rows...).OnConflict(sql.ConflictColumns(imageversion.FieldImageID, imageversion.FieldDigest)).
		Update(func(u *ent.ImageVersionUpsert) { u.UpdateSignedBy() }).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store versions: %w", err)
	}
	for _, id := range moved {
		if err := s.trim(ctx, c, id); err != nil {
			return err
		}
	}
	return nil
}

// trim removes the oldest versions of an image, but not the one that it uses.
func (s *Service) trim(ctx context.Context, c *ent.Client, id uuid.UUID) error {
	i, err := c.Image.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	old, err := c.ImageVersion.Query().Where(imageversion.ImageID(id), imageversion.DigestNotIn(i.Digest, i.TagDigest)).
		Order(imageversion.ByCreatedAt(sql.OrderDesc()), imageversion.ByID(sql.OrderDesc())).Offset(maxVersions - 2).IDs(ctx)
	if err != nil || len(old) == 0 {
		return err
	}
	_, err = c.ImageVersion.Delete().Where(imageversion.IDIn(old...)).Exec(ctx)
	return err
}

// RollbackImageInput names a former digest of the tag; nil: the one that was seen before the
// current one.
type RollbackImageInput struct {
	ID     uuid.UUID
	Digest *string
}

// RollbackImage gives an image a former digest of its tag, and pins it, so that no scan moves it
// again. Sessions that run keep their content.
func (s *Service) RollbackImage(ctx context.Context, in RollbackImageInput) (*ImagePayload, error) {
	if _, err := s.changeableImage(ctx, in.ID); err != nil {
		return nil, err
	}
	if in.Digest != nil && !digestRule.MatchString(*in.Digest) {
		return nil, problem.Invalid("digest", "must be sha256: and 64 hexadecimal digits")
	}
	return s.changeImage(ctx, in.ID, func(tx *ent.Tx, i *ent.Image) (*ent.ImageUpdateOne, error) {
		if i.SessionID != nil {
			return nil, problem.Precondition("image %s was made of a session: its registry does not keep former contents; save the session again", i.Name).WithField("id")
		}
		var to *ent.ImageVersion
		var err error
		if in.Digest != nil {
			to, err = versionOf(ctx, tx, i, *in.Digest)
		} else {
			to, err = former(ctx, tx, i)
		}
		if err != nil {
			return nil, err
		}
		if to.Digest == i.Digest {
			return nil, problem.Precondition("image %s has the digest %s already", i.Name, i.Digest).WithField("digest")
		}
		return take(i.Update(), to).SetTagPolicy(entimage.TagPolicyPinned), nil
	})
}

// VersionsOf returns the contents that the tags of images had, newest first.
func (s *Service) VersionsOf(ctx context.Context, images []uuid.UUID) (map[uuid.UUID][]*ent.ImageVersion, error) {
	all, err := s.client.ImageVersion.Query().Where(func(q *sql.Selector) { q.Where(store.In(q.C(imageversion.FieldImageID), images)) }).
		Order(imageversion.ByCreatedAt(sql.OrderDesc()), imageversion.ByID(sql.OrderDesc())).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	out := make(map[uuid.UUID][]*ent.ImageVersion, len(images))
	for _, id := range images {
		out[id] = []*ent.ImageVersion{}
	}
	for _, v := range all {
		out[v.ImageID] = append(out[v.ImageID], v)
	}
	return out, nil
}

// take gives an image the content of a version.
func take(u *ent.ImageUpdateOne, v *ent.ImageVersion) *ent.ImageUpdateOne {
	return u.SetDigest(v.Digest).SetSizeBytes(v.SizeBytes).SetLabels(v.Labels).SetSignedBy(v.SignedBy)
}

func versionOf(ctx context.Context, tx *ent.Tx, i *ent.Image, digest string) (*ent.ImageVersion, error) {
	v, err := tx.ImageVersion.Query().Where(imageversion.ImageID(i.ID), imageversion.Digest(digest)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.NotFound(fmt.Sprintf("version %s of image %s", digest, i.Name)).WithField("digest")
	}
	if err != nil {
		return nil, fmt.Errorf("read version: %w", err)
	}
	return v, nil
}

// former returns the version that was seen before the current one.
func former(ctx context.Context, tx *ent.Tx, i *ent.Image) (*ent.ImageVersion, error) {
	all, err := tx.ImageVersion.Query().Where(imageversion.ImageID(i.ID)).
		Order(imageversion.ByCreatedAt(sql.OrderDesc()), imageversion.ByID(sql.OrderDesc())).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	for n, v := range all {
		if v.Digest == i.Digest && n+1 < len(all) {
			return all[n+1], nil
		}
	}
	return nil, problem.Precondition("the tag of image %s had no other digest before", i.Name)
}

func (s *Service) changeableImage(ctx context.Context, id uuid.UUID) (*ent.Image, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	i, err := s.client.Image.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "image", "id")
	}
	return i, permit.To(ctx, access.Update, i)
}

// changeImage changes an image whose row is locked.
func (s *Service) changeImage(ctx context.Context, id uuid.UUID, change func(*ent.Tx, *ent.Image) (*ent.ImageUpdateOne, error)) (*ImagePayload, error) {
	out := &ImagePayload{}
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		i, err := tx.Image.Query().Where(entimage.ID(id)).ForUpdate().Only(ctx)
		if err != nil {
			return permit.Missing(err, "image", "id")
		}
		if i.RegistryID != nil {
			if i.Edges.Registry, err = tx.Registry.Get(ctx, *i.RegistryID); err != nil {
				return fmt.Errorf("read registry: %w", err)
			}
		}
		u, err := change(tx, i)
		if err != nil {
			return err
		}
		out.Image, err = u.Save(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Image = out.Image.Unwrap()
	return out, nil
}
