package inference

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent limits one event of a stream, in bytes.
const maxEvent = 4 << 20

// events reads the events of a stream as they are.
type events struct {
	lines  *bufio.Reader
	single bool // each line is an event
	event  []byte
}

func newEvents(from io.Reader, single bool) *events {
	return &events{lines: bufio.NewReaderSize(from, 4<<10), single: single}
}

// next returns the next event with the end of its line, or with the empty line after it. The bytes are valid until the next call.
// The last event can come together with io.EOF.
func (e *events) next() ([]byte, error) {
	e.event = e.event[:0]
	whole := true // the line is not the rest of a long one
	for {
		line, err := e.lines.ReadSlice('\n')
		e.event = append(e.event, line...)
		if len(e.event) > maxEvent {
			return nil, fmt.Errorf("an event has more than %d MiB", maxEvent>>20)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			whole = false
			continue
		case err != nil:
			return e.event, err
		case e.single:
			return e.event, nil
		case whole && len(bytes.TrimRight(line, "\r\n")) == 0:
			return e.event, nil
		}
		whole = true
	}
}
