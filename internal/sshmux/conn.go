// Package sshmux carries the channels and requests of SSH over one stream that is encrypted and
// authenticated below, as the connection protocol (RFC 4254) does inside the transport of SSH. The
// gateway and the runner use it between them.
//
// Each side first sends a line with its version. Frames follow: eight bytes, which are the kind of the frame,
// the length of its content (three bytes) and the number of its channel (four bytes), and the content. The
// number 0 is the connection itself. A channel has the same number on both sides; the side that opens
// it chooses the number, the client odd ones and the server even ones.
//
// Both sides of a channel can send window bytes of data before the other one has read any. A side
// that sends more, or frames that make no sense, loses the connection.
package sshmux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// The kinds of frames, with their contents.
const (
	frameOpen     = iota + 1 // openMessage
	frameAccepted            // nothing
	frameRejected            // rejectMessage
	frameData                // data
	frameStderr              // data
	frameWindow              // four bytes: more of the data that can be sent
	frameEOF                 // nothing; no more data follows
	frameRequest             // requestMessage
	frameAnswer              // answerMessage
	frameClose               // nothing
)

const (
	hello      = "BERTH-SSH 1\n"
	headerSize = 8
	// maxData is the data of the largest frame. With the headers of this package and of the tunnel's
	// multiplexer, a frame fills two records of TLS. It is less than the 32 KiB of an SSH packet.
	maxData = 32<<10 - headerSize - 12
	// maxMessage is the content of the largest other frame, which is that of an SSH packet.
	maxMessage = 256 << 10
	// window is as large as that of a stream of the tunnel, which all channels share.
	window = 1 << 20
	// queued is the number of requests, and of new channels, that wait for the program.
	queued = 16
)

type (
	openMessage struct {
		Kind  string
		Extra []byte `ssh:"rest"`
	}
	rejectMessage struct {
		Reason  uint32
		Message string
	}
	requestMessage struct {
		Type      string
		WantReply bool
		Payload   []byte `ssh:"rest"`
	}
	answerMessage struct {
		OK      bool
		Payload []byte `ssh:"rest"`
	}
)

// Request is a request of a channel or of the connection.
type Request struct {
	Type      string
	WantReply bool
	Payload   []byte
	// Answer sends the answer if the sender wants one. A channel's answers have no payload.
	Answer func(ok bool, payload []byte) error
}

// Reply answers a request if its sender wants an answer.
func (r *Request) Reply(ok bool, payload []byte) error {
	if !r.WantReply {
		return nil
	}
	return r.Answer(ok, payload)
}

// Discard refuses requests until their channel or connection ends.
func Discard(requests <-chan *Request) {
	for r := range requests {
		_ = r.Reply(false, nil)
	}
}

// Conn is one side of a connection. Channels and Requests must be received.
type Conn struct {
	// Channels has the channels that the other side opens. It is closed at the end.
	Channels <-chan *NewChannel
	// Requests has the requests that belong to no channel. It is closed at the end.
	Requests <-chan *Request

	stream   io.ReadWriteCloser
	incoming chan *NewChannel
	requests chan *Request
	global   asker
	over     chan struct{} // closed when the connection begins to end
	end      sync.Once

	write sync.Mutex // one frame at a time

	mu       sync.Mutex
	channels map[uint32]*Channel // nil after the end
	parity   uint32              // of our numbers
	next     uint32
}

// Client is the side that asks for the connection. It returns when the server has answered.
func Client(stream io.ReadWriteCloser) (*Conn, error) { return start(stream, 1) }

// Server is the other side.
func Server(stream io.ReadWriteCloser) (*Conn, error) { return start(stream, 0) }

func start(stream io.ReadWriteCloser, parity uint32) (*Conn, error) {
	sent := make(chan error, 1)
	go func() { // both sides write first, and a stream can be without a buffer
		_, err := io.WriteString(stream, hello)
		sent <- err
	}()
	said := make([]byte, len(hello))
	n, err := io.ReadFull(stream, said)
	if err == nil && string(said) != hello {
		err = errors.New("the versions differ")
	}
	if err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("the other side said %q, not %q: %w", said[:n], hello, err)
	}
	if err := <-sent; err != nil {
		_ = stream.Close()
		return nil, err
	}
	c := &Conn{
		stream: stream, incoming: make(chan *NewChannel, queued), requests: make(chan *Request, queued),
		over: make(chan struct{}), channels: map[uint32]*Channel{}, parity: parity, next: 2 - parity,
		global: newAsker(),
	}
	c.Channels, c.Requests = c.incoming, c.requests
	go c.run()
	return c, nil
}

// Close ends the connection and its channels.
func (c *Conn) Close() error {
	var err error
	c.end.Do(func() {
		close(c.over)
		err = c.stream.Close()
	})
	return err
}

// run receives frames until the end.
func (c *Conn) run() {
	for in := bufio.NewReader(c.stream); c.receive(in) == nil; {
	}
	_ = c.Close()
	c.mu.Lock()
	all := c.channels
	c.channels = nil
	c.mu.Unlock()
	for _, ch := range all {
		ch.finish()
	}
	c.global.end()
	close(c.incoming)
	close(c.requests)
}

// receive handles one frame. It never sends, so that two sides cannot wait for each other.
func (c *Conn) receive(in *bufio.Reader) error {
	var head [headerSize]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	kind, id := head[0], binary.BigEndian.Uint32(head[4:])
	size := int(binary.BigEndian.Uint32(head[:]) & (1<<24 - 1))
	if kind == frameData || kind == frameStderr {
		ch := c.channel(id)
		if ch == nil || size > maxData {
			return errProtocol
		}
		return ch.receive(in, kind, size)
	}
	if size > maxMessage {
		return errProtocol
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(in, content); err != nil {
		return err
	}
	switch {
	case kind == frameOpen:
		return c.opened(id, content)
	case kind == frameRequest && id == 0:
		return c.request(content, c.requests, func(ok bool, payload []byte) error {
			return c.send(frameAnswer, nil, ssh.Marshal(answerMessage{ok, payload}))
		})
	case kind == frameAnswer && id == 0:
		return c.global.answer(content)
	}
	if ch := c.channel(id); ch != nil {
		return ch.handle(kind, content)
	}
	return errProtocol
}

func (c *Conn) channel(id uint32) *Channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.channels[id]
}

// opened handles a channel that the other side opens.
func (c *Conn) opened(id uint32, content []byte) error {
	var m openMessage
	if err := ssh.Unmarshal(content, &m); err != nil || id == 0 || id&1 == c.parity || c.channel(id) != nil {
		return errProtocol
	}
	ch := newChannel(c, id)
	c.mu.Lock()
	c.channels[id] = ch
	c.mu.Unlock()
	select {
	case c.incoming <- &NewChannel{ch: ch, kind: m.Kind, extra: m.Extra}:
		return nil
	case <-c.over:
		return errClosed
	}
}

// request passes a request to the program.
func (c *Conn) request(content []byte, to chan<- *Request, answer func(bool, []byte) error) error {
	var m requestMessage
	if ssh.Unmarshal(content, &m) != nil {
		return errProtocol
	}
	select {
	case to <- &Request{Type: m.Type, WantReply: m.WantReply, Payload: m.Payload, Answer: answer}:
		return nil
	case <-c.over:
		return errClosed
	}
}

// SendRequest sends a request that belongs to no channel, and returns its answer if it wants one.
func (c *Conn) SendRequest(name string, wantReply bool, payload []byte) (bool, []byte, error) {
	return c.global.ask(c, nil, name, wantReply, payload)
}

// OpenChannel opens a channel. An *ssh.OpenChannelError is the other side's refusal.
func (c *Conn) OpenChannel(kind string, extra []byte) (*Channel, <-chan *Request, error) {
	c.mu.Lock()
	if c.channels == nil || c.next >= 1<<31 {
		c.mu.Unlock()
		return nil, nil, errClosed
	}
	ch := newChannel(c, c.next)
	ch.asked = true
	c.channels[ch.id] = ch
	c.next += 2
	c.mu.Unlock()
	if err := c.send(frameOpen, ch, ssh.Marshal(openMessage{kind, extra})); err != nil {
		return nil, nil, err
	}
	select {
	case err := <-ch.decision:
		if err != nil {
			return nil, nil, err
		}
		return ch, ch.requests, nil
	case <-c.over:
		return nil, nil, errClosed
	}
}

// send sends a frame that has no data; the channel is nil for one of the connection.
func (c *Conn) send(kind byte, ch *Channel, content []byte) error {
	if len(content) > maxMessage {
		return fmt.Errorf("a message of %d bytes is larger than the limit of %d", len(content), maxMessage)
	}
	return c.flush(append(make([]byte, headerSize, headerSize+len(content)), content...), kind, ch)
}

// flush completes the header of a frame and sends it. No frame follows the close of a channel.
func (c *Conn) flush(frame []byte, kind byte, ch *Channel) error {
	c.write.Lock()
	defer c.write.Unlock()
	binary.BigEndian.PutUint32(frame, uint32(kind)<<24|uint32(len(frame)-headerSize))
	if ch != nil {
		if ch.sentClose {
			return io.EOF
		}
		ch.sentClose = kind == frameClose
		binary.BigEndian.PutUint32(frame[4:], ch.id)
	}
	if _, err := c.stream.Write(frame); err != nil {
		_ = c.Close()
		return err
	}
	return nil
}

// drop forgets a channel that both sides have closed, or one of them has refused.
func (c *Conn) drop(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.channels, id)
}

var (
	errClosed   = errors.New("the connection has ended")
	errProtocol = errors.New("the other side does not follow the protocol")
)
