package answer

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/99designs/gqlgen/graphql"
)

// Word returns the enum value of a Go constant: "user_requested" is USER_REQUESTED. The
// empty string is null.
func Word[S ~string](s S) graphql.Marshaler {
	if s == "" {
		return graphql.Null
	}
	return word(s)
}

// ReadWord returns the Go constant of an enum value. gqlgen has already refused values
// that the enum lacks, but in variables it ignores case.
func ReadWord[S ~string](v any) (S, error) {
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("enum values must be strings, not %T", v)
	}
	if text != strings.ToUpper(text) {
		return "", fmt.Errorf("enum value %q must be in capitals", text)
	}
	return S(strings.ToLower(text)), nil
}

// word is an enum value in lower case.
type word string

// MarshalGQL implements graphql.Marshaler.
func (s word) MarshalGQL(w io.Writer) {
	buf, ok := w.(*bytes.Buffer)
	if !ok {
		Buffered(func(buf *bytes.Buffer) {
			s.MarshalGQL(buf)
			_, _ = w.Write(buf.Bytes())
		})
		return
	}
	text := append(buf.AvailableBuffer(), '"')
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		text = append(text, c)
	}
	buf.Write(append(text, '"'))
}
