package image

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imagecopy"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/manager/store"
)

// ImageUse is how much an image is used.
type ImageUse struct {
	ActiveSessions int
	Agents         int
	LastUsedAt     *time.Time // as far as those agents have reported it
}

// UseOf returns how much images are used, by their IDs, in what the viewer can see.
func (s *Service) UseOf(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ImageUse, error) {
	uses := make(map[uuid.UUID]*ImageUse, len(ids))
	for _, id := range ids {
		uses[id] = &ImageUse{}
	}
	var active []struct {
		ImageID uuid.UUID `json:"image_id"`
		Count   int       `json:"count"`
	}
	err := s.client.Session.Query().Where(session.ImageIDIn(ids...), session.TerminatedAtIsNil()).
		GroupBy(session.FieldImageID).Aggregate(ent.Count()).Scan(ctx, &active)
	if err != nil {
		return nil, fmt.Errorf("count the sessions of images: %w", err)
	}
	for _, a := range active {
		uses[a.ImageID].ActiveSessions = a.Count
	}
	return uses, s.addCopies(ctx, ids, uses)
}

// addCopies adds the agents that have the images, and when they last used them.
func (s *Service) addCopies(ctx context.Context, ids []uuid.UUID, uses map[uuid.UUID]*ImageUse) error {
	var copies []struct {
		ImageID uuid.UUID  `json:"image_id"`
		Count   int        `json:"count"`
		UsedAt  *time.Time `json:"used_at"`
	}
	err := s.client.ImageCopy.Query().Where(imagecopy.StateEQ(imagecopy.StatePresent)).Modify(byImage(ids)).Scan(ctx, &copies)
	if err != nil {
		return fmt.Errorf("count the agents that have images: %w", err)
	}
	for _, c := range copies {
		uses[c.ImageID].Agents, uses[c.ImageID].LastUsedAt = c.Count, c.UsedAt
	}
	return nil
}

// byImage joins copies with the images whose present content they are, and counts them for each image.
func byImage(ids []uuid.UUID) func(*sql.Selector) {
	return func(c *sql.Selector) {
		i := sql.Table(entimage.Table)
		c.Join(i).OnP(sql.And(
			sql.ColumnsEQ(c.C(imagecopy.FieldReference), i.C(entimage.FieldReference)),
			sql.ColumnsEQ(c.C(imagecopy.FieldDigest), i.C(entimage.FieldDigest)),
		)).Where(store.In(i.C(entimage.FieldID), ids)).
			Select(
				sql.As(i.C(entimage.FieldID), "image_id"),
				sql.As(sql.Count(c.C(imagecopy.FieldID)), "count"),
				sql.As(sql.Max(c.C(imagecopy.FieldUsedAt)), "used_at"),
			).GroupBy(i.C(entimage.FieldID))
	}
}
