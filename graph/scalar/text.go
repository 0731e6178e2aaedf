package scalar

import (
	"bytes"
	"encoding/hex"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
)

// The most common scalars are appended directly to the buffer of the answer. Their text is
// the same as that of gqlgen's scalars.

// text is a value that appends its JSON.
type text interface{ appendTo([]byte) []byte }

func write(w io.Writer, t text) {
	if buf, ok := w.(*bytes.Buffer); ok {
		_, _ = buf.Write(t.appendTo(buf.AvailableBuffer()))
		return
	}
	_, _ = w.Write(t.appendTo(nil))
}

type idText uuid.UUID

func (id idText) appendTo(b []byte) []byte {
	b = append(b, '"')
	b = append(hex.AppendEncode(b, id[:4]), '-')
	b = append(hex.AppendEncode(b, id[4:6]), '-')
	b = append(hex.AppendEncode(b, id[6:8]), '-')
	b = append(hex.AppendEncode(b, id[8:10]), '-')
	return append(hex.AppendEncode(b, id[10:]), '"')
}

// MarshalGQL implements graphql.Marshaler.
func (id idText) MarshalGQL(w io.Writer) { write(w, id) }

// MarshalID writes an id. The nil UUID is written as null.
func MarshalID(id uuid.UUID) graphql.Marshaler {
	if id == uuid.Nil {
		return graphql.Null
	}
	return idText(id)
}

// UnmarshalID reads an id.
func UnmarshalID(v any) (uuid.UUID, error) { return graphql.UnmarshalUUID(v) }

type timeText time.Time

func (t timeText) appendTo(b []byte) []byte {
	return append(time.Time(t).AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

// MarshalGQL implements graphql.Marshaler.
func (t timeText) MarshalGQL(w io.Writer) { write(w, t) }

// MarshalTime writes a time. The zero time is written as null.
func MarshalTime(t time.Time) graphql.Marshaler {
	if t.IsZero() {
		return graphql.Null
	}
	return timeText(t)
}

// UnmarshalTime reads a time.
func UnmarshalTime(v any) (time.Time, error) { return graphql.UnmarshalTime(v) }

type stringText string

func (s stringText) appendTo(b []byte) []byte { return append(append(append(b, '"'), s...), '"') }

// MarshalGQL implements graphql.Marshaler.
func (s stringText) MarshalGQL(w io.Writer) {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == '"' || s[i] == '\\' {
			graphql.MarshalString(string(s)).MarshalGQL(w) // gqlgen escapes them
			return
		}
	}
	write(w, s)
}

// MarshalString writes a string.
func MarshalString(s string) graphql.Marshaler { return stringText(s) }

// UnmarshalString reads a string.
func UnmarshalString(v any) (string, error) { return graphql.UnmarshalString(v) }
