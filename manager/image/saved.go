package image

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imageversion"
	"github.com/berthhq/berth/internal/registry/remote"
)

// Saved says what an image was saved from.
type Saved struct {
	Session uuid.UUID
	Base    string // reference of the session's image
	Adds    int64  // bytes that public images do not have
	By      uuid.UUID
}

// KeepOwn adds the content of an image that was saved from a session to its history. old is the image that it
// replaced, or nil: its content may be from before histories were kept. Content that is saved again is the newest.
func (s *Service) KeepOwn(ctx context.Context, tx *ent.Tx, img, old *ent.Image, found remote.Image, from Saved) error {
	if old != nil && old.Digest != found.Digest && old.SessionID != nil && old.CommittedAt != nil {
		known, err := tx.ImageVersion.Query().Where(imageversion.ImageID(old.ID), imageversion.Digest(old.Digest)).Exist(ctx)
		if err != nil {
			return fmt.Errorf("read versions: %w", err)
		}
		if !known {
			err := tx.ImageVersion.Create().SetImageID(old.ID).SetDigest(old.Digest).SetSizeBytes(old.SizeBytes).SetLabels(old.Labels).
				SetCreatedAt(*old.CommittedAt).SetSessionID(*old.SessionID).SetBase(old.Base).SetAddedBytes(old.AddedBytes).
				SetNillableCreatorID(old.OwnerID).Exec(ctx)
			if err != nil {
				return fmt.Errorf("store version: %w", err)
			}
		}
	}
	if _, err := tx.ImageVersion.Delete().Where(imageversion.ImageID(img.ID), imageversion.Digest(found.Digest)).Exec(ctx); err != nil {
		return fmt.Errorf("replace version: %w", err)
	}
	err := tx.ImageVersion.Create().SetImageID(img.ID).SetDigest(found.Digest).SetSizeBytes(found.Size).SetLabels(Labels(found)).
		SetEnvironment(append([]string{}, found.Environment...)).SetLayers(found.Layers).SetSessionID(from.Session).SetBase(from.Base).
		SetAddedBytes(from.Adds).SetCreatorID(from.By).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store version: %w", err)
	}
	return s.trim(ctx, tx.Client(), img.ID)
}
