package containerfile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kinds of frames. A frame is its kind, the length of its content in four bytes, and the content.
const (
	header = 'h' // a request or an answer
	data   = 'd'
	end    = 'e' // of the data; empty
)

// Conn is one side of a connection. Reads and writes may run at the same time, but not two of a kind.
type Conn struct {
	in  *bufio.Reader
	out io.Writer
	buf []byte // one frame that is written
}

// NewConn returns a side of a connection.
func NewConn(in io.Reader, out io.Writer) *Conn {
	return &Conn{in: bufio.NewReaderSize(in, 16<<10), out: out}
}

// Send writes a request or an answer.
func (c *Conn) Send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > MaxHeader {
		return fmt.Errorf("a message of %d bytes is longer than the allowed %d bytes", len(b), MaxHeader)
	}
	return c.frame(header, b)
}

// Receive reads a request or an answer. The error is io.EOF if the other side has ended.
func (c *Conn) Receive(message any) error {
	kind, n, err := c.next()
	if err != nil {
		return err
	}
	if kind != header || n > MaxHeader {
		return fmt.Errorf("a frame of the kind %q with %d bytes is not a message", kind, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(b, message)
}

// Write sends data in frames.
func (c *Conn) Write(p []byte) (int, error) {
	done := 0
	for len(p) > done {
		part := p[done:min(len(p), done+MaxData)]
		if err := c.frame(data, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// CloseWrite ends the data.
func (c *Conn) CloseWrite() error { return c.frame(end, nil) }

// WriteTo copies the data of the other side to w. It returns a Failure if the other side sends one
// instead of the end. After another error, also one of w, the connection can no longer be used.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	var done int64
	b := make([]byte, MaxData)
	for {
		kind, n, err := c.next()
		switch {
		case err != nil:
			return done, noEOF(err)
		case kind == end && n == 0:
			return done, nil
		case kind == header && n <= MaxHeader:
			return done, c.failure(n)
		case kind != data || n > MaxData:
			return done, fmt.Errorf("a frame of the kind %q with %d bytes is not data", kind, n)
		}
		if _, err := io.ReadFull(c.in, b[:n]); err != nil {
			return done, noEOF(err)
		}
		wrote, err := w.Write(b[:n])
		done += int64(wrote)
		if err != nil {
			return done, err
		}
	}
}

// failure reads a message that takes the place of data.
func (c *Conn) failure(n int) error {
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return noEOF(err)
	}
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	if a.Failure == nil {
		return errors.New("an answer interrupts data without a reason")
	}
	return a.Failure
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *Conn) next() (kind byte, n int, err error) {
	var head [5]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, 0, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > MaxHeader {
		return 0, 0, fmt.Errorf("a frame of %d bytes is longer than the allowed %d bytes", size, MaxHeader)
	}
	return head[0], int(size), nil
}

func (c *Conn) frame(kind byte, content []byte) error {
	c.buf = append(c.buf[:0], kind)
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(content)))
	c.buf = append(c.buf, content...)
	_, err := c.out.Write(c.buf)
	if len(content) > MaxData {
		c.buf = nil
	}
	return err
}
