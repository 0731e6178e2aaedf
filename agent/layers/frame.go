package layers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
)

// The body of an answer is a sequence of frames, each with a kind. Data and aborted frames have a length of
// four bytes and that many bytes.
const (
	frameData    = 'd'
	frameWaiting = 'w' // the sender has sent what it has, and still lives
	frameEnd     = 'e' // the part is complete and verified
	frameAborted = 'x' // with the reason: what was sent must not be used
)

const (
	maxFrame  = 1 << 20
	maxReason = 512
)

// errAborted is the error of a sender that withdraws what it has sent.
var errAborted = fmt.Errorf("the agent has withdrawn the part: %w", errdefs.ErrAborted)

// writeFrame writes a frame with its bytes in one call, for one record of TLS. buf has space for the header
// before the bytes.
func writeFrame(w io.Writer, kind byte, buf []byte) error {
	buf[0] = kind
	binary.BigEndian.PutUint32(buf[1:], uint32(len(buf)-headerSize))
	_, err := w.Write(buf)
	return err
}

const headerSize = 5

// frames reads the data of frames. It returns io.EOF after the end frame, so that a connection that breaks is
// an error.
type frames struct {
	from  io.Reader
	left  uint32
	moved func(n int) // called for data and, with 0, for waiting frames
	ended bool
}

func (f *frames) Read(p []byte) (int, error) {
	for f.left == 0 {
		if f.ended {
			return 0, io.EOF
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.from.Read(p[:min(len(p), int(f.left))])
	f.left -= uint32(n)
	f.moved(n)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, unexpected(err)
}

// next reads the header of a frame.
func (f *frames) next() error {
	var h [headerSize]byte
	if _, err := io.ReadFull(f.from, h[:1]); err != nil {
		return unexpected(err)
	}
	switch h[0] {
	case frameWaiting:
		f.moved(0)
		return nil
	case frameEnd:
		f.ended = true
		return nil
	}
	if _, err := io.ReadFull(f.from, h[1:]); err != nil {
		return unexpected(err)
	}
	n := binary.BigEndian.Uint32(h[1:])
	switch {
	case h[0] == frameData && n <= maxFrame:
		f.left = n
		return nil
	case h[0] == frameAborted && n <= maxReason:
		reason := make([]byte, n)
		_, _ = io.ReadFull(f.from, reason)
		return fmt.Errorf("%w: %q", errAborted, reason)
	}
	return fmt.Errorf("frame %q with %d bytes: %w", h[0], n, errdefs.ErrDataLoss)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
