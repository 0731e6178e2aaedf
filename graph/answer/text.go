package answer

import (
	"bytes"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// largestBuffer is the size up to which a buffer is reused.
const largestBuffer = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Buffered calls use with an empty buffer, which is valid only during the call.
func Buffered(use func(*bytes.Buffer)) {
	buf := buffers.Get().(*bytes.Buffer)
	use(buf)
	if buf.Cap() <= largestBuffer {
		buf.Reset()
		buffers.Put(buf)
	}
}

// Text returns the JSON of a value.
func Text(v graphql.Marshaler) (text []byte) {
	Buffered(func(buf *bytes.Buffer) {
		v.MarshalGQL(buf)
		text = bytes.Clone(buf.Bytes())
	})
	return text
}
