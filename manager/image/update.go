package image

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"

	entimage "github.com/berthhq/berth/ent/image"
)

// UpdateImageInput changes the fields that are not nil.
type UpdateImageInput struct {
	ID          uuid.UUID
	Description *string
	Visibility  *entimage.Visibility
	Project     *uuid.UUID
}

// maxDescription is in characters.
const maxDescription = 1000

// CheckDescription returns an error for a description that is too long.
func CheckDescription(text string) error {
	if utf8.RuneCountInString(text) > maxDescription || !utf8.ValidString(text) {
		return problem.Invalid("description", "must be text of at most %d characters", maxDescription).WithLimit(fmt.Sprint(maxDescription))
	}
	return nil
}

// UpdateImage changes the description of an image, and who can use one that was made of a session.
func (s *Service) UpdateImage(ctx context.Context, in UpdateImageInput) (*ImagePayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	image, err := s.client.Image.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "image", "id")
	}
	if err := permit.To(ctx, access.Update, image); err != nil {
		return nil, err
	}
	up := image.Update().SetNillableDescription(in.Description)
	if in.Description != nil {
		if err := CheckDescription(*in.Description); err != nil {
			return nil, err
		}
	}
	if in.Project != nil && (in.Visibility == nil || *in.Visibility != entimage.VisibilityProject) {
		return nil, problem.Invalid("project", "belongs to the visibility PROJECT")
	}
	if in.Visibility != nil {
		if err := s.show(ctx, v, up, image, in); err != nil {
			return nil, err
		}
	}
	if image, err = up.Save(viewer.SystemContext(ctx)); err != nil {
		return nil, fmt.Errorf("change image: %w", err)
	}
	return &ImagePayload{Image: image}, nil
}

// show sets who can use an image.
func (s *Service) show(ctx context.Context, v *viewer.Viewer, up *ent.ImageUpdateOne, image *ent.Image, in UpdateImageInput) error {
	if image.Visibility == entimage.VisibilityPublic {
		return problem.Precondition("image %s is public and has no owner any more", image.Name).WithField("visibility")
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
