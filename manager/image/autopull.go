package image

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// maxAutoPull limits the resource groups that keep an image.
const maxAutoPull = 100

// autoPull sets the resource groups whose agents keep an image. The viewer needs the permission to change each group that
// is added or removed, because its agents get the work.
func (s *Service) autoPull(ctx context.Context, u *ent.ImageUpdateOne, i *ent.Image, groups []uuid.UUID) error {
	if len(groups) > maxAutoPull {
		return problem.Invalid("autoPull", "%d resource groups are more than %d", len(groups), maxAutoPull).WithLimit(fmt.Sprint(maxAutoPull))
	}
	before, err := i.QueryAutoPull().IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read resource groups of image: %w", err)
	}
	var changed []uuid.UUID
	for _, id := range groups {
		if !slices.Contains(before, id) && !slices.Contains(changed, id) {
			changed = append(changed, id)
		}
	}
	for _, id := range before {
		if !slices.Contains(groups, id) {
			changed = append(changed, id)
		}
	}
	found, err := s.client.ResourceGroup.Query().Where(resourcegroup.IDIn(changed...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read resource groups: %w", err)
	}
	if len(found) < len(changed) {
		return problem.NotFound("resource group").WithField("autoPull")
	}
	for _, g := range found {
		if err := permit.To(ctx, access.Update, g); err != nil {
			return err
		}
	}
	u.ClearAutoPull().AddAutoPullIDs(groups...)
	return nil
}
