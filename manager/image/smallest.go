package image

import (
	"context"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"

	entimage "github.com/berthhq/berth/ent/image"
)

// tried limits the images that Smallest looks at.
const tried = 20

// Smallest returns the smallest image that the viewer can start a session from.
func (s *Service) Smallest(ctx context.Context) (*ent.Image, error) {
	// Without the private images of others, which administrators can use.
	offered := entimage.VisibilityEQ(entimage.VisibilityPublic)
	if v := viewer.From(ctx); v != nil {
		offered = entimage.Or(offered, entimage.OwnerID(v.User))
	}
	list, err := s.client.Image.Query().Where(Open(ctx), offered, entimage.StatusEQ(entimage.StatusAlive)).Order(entimage.BySizeBytes(), entimage.ByReference()).Limit(tried).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}
	for _, i := range list {
		if img, err := s.Resolve(ctx, i.Reference); err == nil {
			return img, nil
		}
	}
	return nil, problem.Precondition("you can use no image: name one that the session of the build starts from").WithField("base")
}
