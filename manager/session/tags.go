package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	maxTags      = 16 // of a session
	maxTagLength = 64 // characters
)

// SetSessionTagsInput replaces the tags of a session.
type SetSessionTagsInput struct {
	ID   uuid.UUID
	Tags []string
}

// SetSessionTags replaces the tags of a session, which may have ended.
func (s *Service) SetSessionTags(ctx context.Context, in SetSessionTagsInput) (*SessionPayload, error) {
	sess, err := s.find(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	if err := checkTagList(in.Tags); err != nil {
		return nil, err
	}
	if slices.Equal(sess.Tags, in.Tags) {
		return &SessionPayload{Session: sess}, nil
	}
	if sess, err = s.Client.Session.UpdateOne(sess).SetTags(in.Tags).AddVersion(1).Save(ctx); err != nil {
		return nil, fmt.Errorf("set tags of session %s: %w", in.ID, err)
	}
	s.changed(ctx, sess.ID)
	return &SessionPayload{Session: sess}, nil
}

// checkTags checks the tags of a request.
func checkTags(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.tags = in.Tags
	if spec.tags == nil {
		spec.tags = []string{}
	}
	return checkTagList(in.Tags)
}

func checkTagList(tags []string) error {
	if len(tags) > maxTags {
		return problem.Invalid("tags", "has %d tags", len(tags)).WithLimit(fmt.Sprint(maxTags))
	}
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		if len(tag) < 1 || len(tag) > maxTagLength {
			return problem.Invalid(field, "must have 1 to %d characters", maxTagLength).WithLimit(fmt.Sprintf("1..%d", maxTagLength))
		}
		for j := range len(tag) {
			if c := tag[j]; !isTagCharacter(c, j == 0) {
				return problem.Invalid(field, "%q may contain letters, digits and, after the first character, . _ - : / and =", tag)
			}
		}
		if slices.Contains(tags[:i], tag) {
			return problem.Invalid(field, "%q is given twice", tag)
		}
	}
	return nil
}

func isTagCharacter(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case first:
		return false
	}
	return slices.Contains([]byte("._-:/="), c)
}
