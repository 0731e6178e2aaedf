package image

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"

	entimage "github.com/berthhq/berth/ent/image"
)

// UpdateImageInput changes the fields that are not nil. An empty Deprecated ends the deprecation.
type UpdateImageInput struct {
	ID          uuid.UUID
	Description *string
	Visibility  *entimage.Visibility
	Project     *uuid.UUID
	TagPolicy   *entimage.TagPolicy
	Deprecated  *string
	AutoPull    []uuid.UUID // resource groups whose agents keep the image; nil: unchanged
}

// Limits of texts, in characters.
const (
	maxDescription = 1000
	maxDeprecated  = 500
)

// CheckDescription returns an error for a description that is too long.
func CheckDescription(text string) error {
	if utf8.RuneCountInString(text) > maxDescription || !utf8.ValidString(text) {
		return problem.Invalid("description", "must be text of at most %d characters", maxDescription).WithLimit(fmt.Sprint(maxDescription))
	}
	return nil
}

// UpdateImage changes the description of an image, who can use one that was made of a session, and
// what scans do when its tag has moved, or deprecates it. An image that follows its tag from now on
// takes the digest of the tag at once.
func (s *Service) UpdateImage(ctx context.Context, in UpdateImageInput) (*ImagePayload, error) {
	if _, err := s.changeableImage(ctx, in.ID); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return s.changeImage(ctx, in.ID, func(tx *ent.Tx, i *ent.Image) (*ent.ImageUpdateOne, error) {
		u := i.Update().SetNillableDescription(in.Description).SetNillableDeprecated(in.Deprecated)
		if in.AutoPull != nil {
			if err := s.autoPull(ctx, u, i, in.AutoPull); err != nil {
				return nil, err
			}
		}
		if in.Visibility != nil {
			if err := s.show(ctx, tx, u, i, in); err != nil {
				return nil, err
			}
		}
		return u, in.follow(ctx, tx, u, i)
	})
}

func (in *UpdateImageInput) check() error {
	if in.Description != nil {
		if err := CheckDescription(*in.Description); err != nil {
			return err
		}
	}
	if in.Project != nil && (in.Visibility == nil || *in.Visibility != entimage.VisibilityProject) {
		return problem.Invalid("project", "belongs to the visibility PROJECT")
	}
	if in.TagPolicy != nil {
		if err := entimage.TagPolicyValidator(*in.TagPolicy); err != nil {
			return problem.Invalid("tagPolicy", "must be REGISTRY, PINNED or FOLLOW")
		}
	}
	if in.Deprecated != nil {
		return naming.Line("deprecated", *in.Deprecated, maxDeprecated)
	}
	return nil
}

// follow sets the tag policy of an image, and its digest if the policy changes it.
func (in *UpdateImageInput) follow(ctx context.Context, tx *ent.Tx, u *ent.ImageUpdateOne, i *ent.Image) error {
	if in.TagPolicy == nil {
		return nil
	}
	if i.SessionID != nil {
		return problem.Precondition("image %s was made of a session, and no scan changes it", i.Name).WithField("tagPolicy")
	}
	u.SetTagPolicy(*in.TagPolicy)
	if i.Edges.Registry == nil {
		return nil
	}
	i.TagPolicy = *in.TagPolicy
	if pinned(i.Edges.Registry, i) || TagDigest(i) == i.Digest {
		return nil
	}
	to, err := versionOf(ctx, tx, i, TagDigest(i))
	if err != nil {
		return err
	}
	take(u, to)
	return nil
}

// show sets who can use an image.
func (s *Service) show(ctx context.Context, tx *ent.Tx, up *ent.ImageUpdateOne, image *ent.Image, in UpdateImageInput) error {
	v := viewer.From(ctx)
	if image.Visibility == entimage.VisibilityPublic {
		return problem.Precondition("image %s is public and no longer has an owner", image.Name).WithField("visibility")
	}
	up.SetVisibility(*in.Visibility)
	switch *in.Visibility {
	case entimage.VisibilityPublic:
		if !v.Superadmin() {
			return problem.Forbidden("only superadmins can make an image public").WithField("visibility")
		}
		up.ClearOwnerID().ClearProjectID().ClearDomainID().SetAddedBytes(0)
	case entimage.VisibilityProject:
		if in.Project == nil {
			return problem.Invalid("project", "is required for the visibility PROJECT")
		}
		if err := s.CheckProject(ctx, v, *in.Project); err != nil {
			return err
		}
		if s.onShare != nil && (image.ProjectID == nil || *image.ProjectID != *in.Project) {
			if err := s.onShare(ctx, tx, image, *in.Project); err != nil {
				return err
			}
		}
		up.SetProjectID(*in.Project)
	default:
		up.ClearProjectID()
	}
	return nil
}

// CheckProject returns an error unless the viewer can share images with the project.
func (s *Service) CheckProject(ctx context.Context, v *viewer.Viewer, project uuid.UUID) error {
	if _, err := s.client.Project.Get(ctx, project); err != nil {
		return permit.Missing(err, "project", "project")
	}
	if !v.MemberOf(project) {
		return problem.Forbidden("you are not a member of this project").WithField("project")
	}
	return nil
}
