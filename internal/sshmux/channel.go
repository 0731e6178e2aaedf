package sshmux

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// NewChannel is a channel that the other side wants to open. Its program calls Accept or Reject once.
type NewChannel struct {
	ch    *Channel
	kind  string
	extra []byte
}

// ChannelType returns the type of the channel.
func (n *NewChannel) ChannelType() string { return n.kind }

// ExtraData returns the data of the type.
func (n *NewChannel) ExtraData() []byte { return n.extra }

// Accept opens the channel. Its requests must be received.
func (n *NewChannel) Accept() (*Channel, <-chan *Request, error) {
	if err := n.ch.conn.send(frameAccepted, n.ch, nil); err != nil {
		return nil, nil, err
	}
	return n.ch, n.ch.requests, nil
}

// Reject refuses the channel.
func (n *NewChannel) Reject(reason ssh.RejectionReason, message string) error {
	n.ch.conn.drop(n.ch.id)
	return n.ch.conn.send(frameRejected, n.ch, ssh.Marshal(rejectMessage{uint32(reason), message}))
}

// Channel is an open channel. It is an ssh.Channel.
type Channel struct {
	conn     *Conn
	id       uint32
	decision chan error // the answer to the open
	requests chan *Request
	asker    asker
	out, err queue

	asked     bool // this side has opened the channel, and has no answer yet; the receiver's
	sentClose bool // guarded by the connection's write

	mu       sync.Mutex
	readable sync.Cond // for out and err
	writable sync.Cond
	credit   int  // data that can be sent
	expected int  // data that the other side can send
	consumed int  // data that the program has read, and the other side does not know of
	noMore   bool // the other side sends no more data
	sentEOF  bool
	closed   bool // by this side
	finished bool // by the other side
}

func newChannel(c *Conn, id uint32) *Channel {
	ch := &Channel{
		conn: c, id: id, decision: make(chan error, 1), requests: make(chan *Request, queued), asker: newAsker(),
		credit: window, expected: window,
	}
	ch.readable.L, ch.writable.L = &ch.mu, &ch.mu
	return ch
}

// handle handles a frame without data.
func (ch *Channel) handle(kind byte, content []byte) error {
	if ch.asked {
		return ch.decide(kind, content)
	}
	if ch.finished {
		return errProtocol
	}
	switch kind {
	case frameRequest:
		return ch.conn.request(content, ch.requests, func(ok bool, _ []byte) error {
			return ch.conn.send(frameAnswer, ch, ssh.Marshal(answerMessage{OK: ok}))
		})
	case frameAnswer:
		return ch.asker.answer(content)
	case frameWindow:
		return ch.more(content)
	case frameEOF:
		ch.mu.Lock()
		defer ch.mu.Unlock()
		ch.noMore = true
		ch.readable.Broadcast()
		return nil
	case frameClose:
		ch.finish()
		go ch.Close() // as the protocol wants; this goroutine must not send
		return nil
	}
	return errProtocol
}

// decide handles the answer to an open.
func (ch *Channel) decide(kind byte, content []byte) error {
	var m rejectMessage
	switch {
	case kind == frameAccepted:
		ch.decision <- nil
	case kind == frameRejected && ssh.Unmarshal(content, &m) == nil:
		ch.conn.drop(ch.id)
		ch.decision <- &ssh.OpenChannelError{Reason: ssh.RejectionReason(m.Reason), Message: m.Message}
	default:
		return errProtocol
	}
	ch.asked = false
	return nil
}

func (ch *Channel) more(content []byte) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(content) != 4 || int64(ch.credit)+int64(binary.BigEndian.Uint32(content)) > window {
		return errProtocol
	}
	ch.credit += int(binary.BigEndian.Uint32(content))
	ch.writable.Broadcast()
	return nil
}

// finish handles the other side's close, or the end of the connection.
func (ch *Channel) finish() {
	if ch.finished { // only this goroutine sets it
		return
	}
	ch.mu.Lock()
	ch.finished, ch.noMore = true, true
	ch.readable.Broadcast()
	ch.writable.Broadcast()
	both := ch.closed
	ch.mu.Unlock()
	close(ch.requests)
	ch.asker.end()
	if both {
		ch.conn.drop(ch.id)
	}
}

// receive reads the data of a frame.
func (ch *Channel) receive(in *bufio.Reader, kind byte, size int) error {
	ch.mu.Lock()
	ok := size <= ch.expected && !ch.asked && !ch.finished
	ch.expected -= size
	late := ch.noMore // written while the end was sent
	ch.mu.Unlock()
	if !ok {
		return errProtocol
	}
	if late {
		_, err := in.Discard(size)
		return err
	}
	q := &ch.out
	if kind == frameStderr {
		q = &ch.err
	}
	p, err := read(in, size)
	if err != nil {
		return err
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	q.add(p)
	ch.readable.Broadcast()
	return nil
}

// await waits for data, with the lock. It returns io.EOF after the last.
func (ch *Channel) await(q *queue) error {
	for q.empty() {
		if ch.noMore {
			return io.EOF
		}
		ch.readable.Wait()
	}
	return nil
}

// take waits for data and removes a piece. The caller calls consume when it has used the data.
func (ch *Channel) take(q *queue) (piece, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if err := ch.await(q); err != nil {
		return piece{}, err
	}
	return q.pop(), nil
}

// copy waits for data and removes what fits.
func (ch *Channel) copy(q *queue, into []byte) (int, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if err := ch.await(q); err != nil {
		return 0, err
	}
	return q.read(into), nil
}

// consume lets the other side send more.
func (ch *Channel) consume(n int) {
	ch.mu.Lock()
	ch.consumed += n
	report := ch.consumed
	if report < window/4 || ch.finished || ch.closed {
		ch.mu.Unlock()
		return
	}
	ch.consumed = 0
	ch.expected += report
	ch.mu.Unlock()
	_ = ch.conn.send(frameWindow, ch, binary.BigEndian.AppendUint32(nil, uint32(report)))
}

// reserve waits until data can be sent, and returns how much of n bytes can.
func (ch *Channel) reserve(n int) (int, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for ch.credit == 0 && !ch.closed && !ch.finished {
		ch.writable.Wait()
	}
	if ch.closed || ch.finished || ch.sentEOF {
		return 0, io.EOF
	}
	n = min(n, ch.credit)
	ch.credit -= n
	return n, nil
}

// giveBack returns what was reserved and not sent.
func (ch *Channel) giveBack(n int) {
	if n == 0 {
		return
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.credit += n
	ch.writable.Broadcast()
}

// SendRequest implements ssh.Channel.
func (ch *Channel) SendRequest(name string, wantReply bool, payload []byte) (bool, error) {
	ch.mu.Lock()
	closed := ch.closed
	ch.mu.Unlock()
	if closed {
		return false, io.EOF
	}
	ok, _, err := ch.asker.ask(ch.conn, ch, name, wantReply, payload)
	return ok, err
}

// CloseWrite implements ssh.Channel.
func (ch *Channel) CloseWrite() error {
	ch.mu.Lock()
	silent := ch.sentEOF || ch.closed || ch.finished
	ch.sentEOF = true
	ch.mu.Unlock()
	if silent {
		return nil
	}
	return ch.conn.send(frameEOF, ch, nil)
}

// Close implements ssh.Channel.
func (ch *Channel) Close() error {
	ch.mu.Lock()
	again, both := ch.closed, ch.finished
	ch.closed = true
	ch.writable.Broadcast()
	ch.mu.Unlock()
	if again {
		return io.EOF
	}
	err := ch.conn.send(frameClose, ch, nil)
	if both {
		ch.conn.drop(ch.id)
	}
	return err
}
