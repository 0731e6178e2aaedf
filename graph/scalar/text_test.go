package scalar

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
)

// TestTextsAreGqlgens compares these scalars with gqlgen's, in a buffer and in another writer.
func TestTextsAreGqlgens(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 8, 7, 654_321_000, time.FixedZone("", 2*3600))
	id := uuid.MustParse("0123abcd-4567-89ef-8e00-fedcba987654")
	for name, c := range map[string]struct{ ours, theirs graphql.Marshaler }{
		"id": {MarshalID(id), graphql.MarshalUUID(id)}, "no id": {MarshalID(uuid.Nil), graphql.MarshalUUID(uuid.Nil)},
		"time": {MarshalTime(now), graphql.MarshalTime(now)}, "UTC": {MarshalTime(now.UTC()), graphql.MarshalTime(now.UTC())},
		"second": {MarshalTime(now.Truncate(time.Second)), graphql.MarshalTime(now.Truncate(time.Second))}, "no time": {MarshalTime(time.Time{}), graphql.MarshalTime(time.Time{})},
		"string": {MarshalString("a"), graphql.MarshalString("a")}, "empty": {MarshalString(""), graphql.MarshalString("")},
		"escapes":  {MarshalString("a\"b\\c\nd\te\x00f\x1f"), graphql.MarshalString("a\"b\\c\nd\te\x00f\x1f")},
		"all text": {MarshalString("é <b> \u2028 日本 \x7f"), graphql.MarshalString("é <b> \u2028 日本 \x7f")},
	} {
		var inBuffer, want bytes.Buffer
		var elsewhere strings.Builder
		c.theirs.MarshalGQL(&want)
		c.ours.MarshalGQL(&inBuffer)
		c.ours.MarshalGQL(io.Writer(&elsewhere))
		if inBuffer.String() != want.String() || elsewhere.String() != want.String() {
			t.Errorf("%s: %s and %s, want %s", name, inBuffer.String(), elsewhere.String(), want.String())
		}
		if (c.ours == graphql.Null) != (c.theirs == graphql.Null) {
			t.Errorf("%s: null is %v", name, c.ours == graphql.Null)
		}
	}
}
