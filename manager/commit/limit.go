package commit

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/policy"
)

// counted are the images of a holder of limits.
type counted struct {
	count int
	bytes int64
}

// Room returns the bytes that an image can add to public images, and an error with the limits that it
// exceeds. adds is the number of bytes that it is known to add. Callers hold the lock on the owner's
// images.
func (s *Service) Room(ctx context.Context, tx *ent.Tx, host string, w Target, adds int64) (int64, error) {
	old, err := s.replaced(ctx, tx, host, w)
	if err != nil {
		return 0, err
	}
	limits, err := s.limits(ctx, w.Domain, w.Owner)
	if err != nil {
		return 0, err
	}
	room := int64(math.MaxInt64)
	var reached []string
	field, most := "", ""
	for i := range limits {
		l := &limits[i]
		has, err := s.counted(ctx, tx.Client(), l)
		if err != nil {
			return 0, err
		}
		if old != nil && old.Status == entimage.StatusAlive {
			has.count, has.bytes = has.count-1, has.bytes-old.AddedBytes
		}
		if n := l.MaxCustomizedImages; n != nil && has.count >= *n {
			field, most = "name", fmt.Sprint(*n)
			reached = append(reached, l.Reached("own images", fmt.Sprint(has.count), "1", most).String())
		}
		if n := l.MaxImageBytes; n != nil {
			room = min(room, *n-has.bytes)
			if has.bytes+max(adds, 1) > *n {
				field, most = "name", strconv.FormatInt(*n, 10)
				reached = append(reached, l.Reached("image bytes", strconv.FormatInt(has.bytes, 10), strconv.FormatInt(max(adds, 1), 10), most).String())
			}
		}
	}
	if len(reached) > 0 {
		return 0, problem.Exhausted("%s", strings.Join(reached, "; ")).WithField(field).WithLimit(most)
	}
	return room, nil
}

// limits returns the policies of the user and their domain that limit images. Those of projects and
// keypairs limit sessions: an image belongs to its user wherever it was made.
func (s *Service) limits(ctx context.Context, domain, owner uuid.UUID) ([]policy.Limit, error) {
	all, err := s.Policies.Limits(ctx, domain, uuid.Nil, owner, uuid.Nil)
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

// counted adds up the images that a limit is about: those of its user, or of all users of its domain.
func (s *Service) counted(ctx context.Context, client *ent.Client, l *policy.Limit) (out counted, err error) {
	of := entimage.OwnerID(l.Person)
	if l.Scope == policy.ScopeDomain {
		of = entimage.HasOwnerWith(user.DomainID(l.ScopeID))
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
	limits, err := s.limits(ctx, v.Domain, v.User)
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
