package syntax

import (
	"fmt"
	"slices"

	"github.com/berthhq/berth/internal/problem"
)

const (
	maxTags      = 16 // of a session
	maxTagLength = 64 // characters
)

// Tags checks the tags of a session.
func Tags(tags []string) error {
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
