package commit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// counted are the images of a holder of limits.
type counted struct {
	count int
	bytes int64
}

// Room returns the limit on bytes that leaves the least room, or nil, and an error with the limits that
// an image exceeds. adds is the number of bytes that it is known to add to public images. It locks the
// images of the owner and the project until the transaction ends.
func (s *Service) Room(ctx context.Context, tx *ent.Tx, host string, w Target, adds int64) (*pushtoken.Quota, error) {
	if err := lock(ctx, tx, w); err != nil {
		return nil, err
	}
	old, err := s.replaced(ctx, tx, host, w)
	if err != nil {
		return nil, err
	}
	project := uuid.Nil
	if w.Project != nil {
		project = *w.Project
	}
	return s.within(ctx, tx, w.Domain, project, w.Owner, old, adds)
}

func (s *Service) within(ctx context.Context, tx *ent.Tx, domain, project, owner uuid.UUID, old *ent.Image, adds int64) (*pushtoken.Quota, error) {
	limits, err := s.limits(ctx, domain, project, owner)
	if err != nil {
		return nil, err
	}
	var room *pushtoken.Quota
	var reached []string
	field, most := "", ""
	for i := range limits {
		l := &limits[i]
		has, err := s.counted(ctx, tx.Client(), l)
		if err != nil {
			return nil, err
		}
		if old != nil && old.Status == entimage.StatusAlive && (l.Scope != policy.ScopeProject || old.ProjectID != nil && *old.ProjectID == l.ScopeID) {
			has.count, has.bytes = has.count-1, has.bytes-old.AddedBytes
		}
		if n := l.MaxCustomizedImages; n != nil && has.count >= *n {
			field, most = "name", fmt.Sprint(*n)
			reached = append(reached, l.Reached("own images", fmt.Sprint(has.count), "1", most).String())
		}
		if n := l.MaxImageBytes; n != nil {
			if room == nil || *n-has.bytes < room.Max-room.Used {
				room = &pushtoken.Quota{Of: string(l.Scope) + " " + l.Holder, Used: has.bytes, Max: *n}
			}
			if has.bytes+max(adds, 1) > *n {
				field, most = "name", strconv.FormatInt(*n, 10)
				reached = append(reached, l.Reached("image bytes", strconv.FormatInt(has.bytes, 10), strconv.FormatInt(max(adds, 1), 10), most).String())
			}
		}
	}
	if len(reached) > 0 {
		return nil, problem.Exhausted("%s", strings.Join(reached, "; ")).WithField(field).WithLimit(most)
	}
	return room, nil
}

// limits returns the policies that limit images: those of the user, of their domain, and of the project
// that an image is shared with. An image that is not shared belongs to its user wherever it was made.
func (s *Service) limits(ctx context.Context, domain, project, owner uuid.UUID) ([]policy.Limit, error) {
	all, err := s.Policies.Limits(ctx, domain, project, owner, uuid.Nil)
	if err != nil {
		return nil, err
	}
	var out []policy.Limit
	for _, l := range all {
		if !l.Narrowed() && (l.MaxCustomizedImages != nil || l.MaxImageBytes != nil) {
			out = append(out, l)
		}
	}
	return out, nil
}

// counted adds up the images that a limit is about: those of its user, of all users of its domain, or
// those that are shared with its project.
func (s *Service) counted(ctx context.Context, client *ent.Client, l *policy.Limit) (out counted, err error) {
	of := entimage.OwnerID(l.Person)
	switch l.Scope {
	case policy.ScopeDomain:
		of = entimage.HasOwnerWith(user.DomainID(l.ScopeID))
	case policy.ScopeProject:
		of = entimage.ProjectID(l.ScopeID)
	}
	return sum(ctx, client.Image.Query().Where(of, entimage.StatusEQ(entimage.StatusAlive)))
}

func sum(ctx context.Context, q *ent.ImageQuery) (out counted, err error) {
	list, err := q.Select(entimage.FieldAddedBytes).All(ctx)
	if err != nil {
		return out, fmt.Errorf("add up images: %w", err)
	}
	for _, i := range list {
		out.count++
		out.bytes += i.AddedBytes
	}
	return out, nil
}

// Spare returns the bytes that the limits of a user and their domain leave for more images, and nil without a limit.
func (s *Service) Spare(ctx context.Context, domain, owner uuid.UUID) (*int64, error) {
	system := viewer.SystemContext(ctx)
	limits, err := s.limits(system, domain, uuid.Nil, owner)
	if err != nil {
		return nil, err
	}
	return s.least(system, limits)
}

// least returns the bytes that the narrowest limit leaves.
func (s *Service) least(ctx context.Context, limits []policy.Limit) (least *int64, err error) {
	for i := range limits {
		if limits[i].MaxImageBytes == nil {
			continue
		}
		has, err := s.counted(viewer.SystemContext(ctx), s.Client, &limits[i])
		if err != nil {
			return nil, err
		}
		if spare := max(0, *limits[i].MaxImageBytes-has.bytes); least == nil || spare < *least {
			least = &spare
		}
	}
	return least, nil
}

// SpareOfProject is Spare of the images that are shared with a project.
func (s *Service) SpareOfProject(ctx context.Context, project uuid.UUID) (*int64, error) {
	limits, err := s.limits(viewer.SystemContext(ctx), uuid.Nil, project, uuid.Nil)
	if err != nil {
		return nil, err
	}
	return s.least(ctx, limits)
}

// ImageUsage is the number and the bytes of a user's images, with their smallest limits.
type ImageUsage struct {
	Count    int
	Bytes    int64
	MaxCount *int
	MaxBytes *int64
}

// Usage returns the usage of the viewer.
func (s *Service) Usage(ctx context.Context) (*ImageUsage, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		_, err := permit.Writer(ctx)
		return nil, err
	}
	has, err := sum(ctx, s.Client.Image.Query().Where(entimage.OwnerID(v.User), entimage.StatusEQ(entimage.StatusAlive)))
	if err != nil {
		return nil, err
	}
	limits, err := s.limits(ctx, v.Domain, uuid.Nil, v.User)
	if err != nil {
		return nil, err
	}
	out := &ImageUsage{Count: has.count, Bytes: has.bytes}
	for _, l := range limits {
		if l.Scope != policy.ScopeUser {
			continue // a limit of the domain is shared with others
		}
		if n := l.MaxCustomizedImages; n != nil && (out.MaxCount == nil || *n < *out.MaxCount) {
			out.MaxCount = n
		}
		if n := l.MaxImageBytes; n != nil && (out.MaxBytes == nil || *n < *out.MaxBytes) {
			out.MaxBytes = n
		}
	}
	return out, nil
}

// shareable returns an error if the limits of a project have no room for an image that its owner shares
// with the project. The row of the image is locked.
func (s *Service) shareable(ctx context.Context, tx *ent.Tx, i *ent.Image, project uuid.UUID) error {
	system := viewer.SystemContext(ctx)
	if err := store.Lock(ctx, tx, "images of project "+project.String()); err != nil {
		return err
	}
	limits, err := s.limits(system, uuid.Nil, project, uuid.Nil)
	if err != nil {
		return err
	}
	if len(limits) == 0 {
		return nil
	}
	_, err = s.within(system, tx, uuid.Nil, project, uuid.Nil, i, i.AddedBytes)
	return problem.Within(err, "project")
}
