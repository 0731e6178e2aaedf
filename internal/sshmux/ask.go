package sshmux

import (
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// asker sends requests and receives their answers, which come in the same order.
type asker struct {
	one     *sync.Mutex // one request with an answer at a time
	answers chan answerMessage
	over    chan struct{} // closed when no more answers come
}

func newAsker() asker {
	return asker{one: &sync.Mutex{}, answers: make(chan answerMessage, 1), over: make(chan struct{})}
}

func (a asker) end() { close(a.over) }

// ask sends a request. It returns io.EOF if the channel or connection ends before the answer.
func (a asker) ask(c *Conn, ch *Channel, name string, wantReply bool, payload []byte) (bool, []byte, error) {
	if wantReply {
		a.one.Lock()
		defer a.one.Unlock()
	}
	select {
	case <-a.over:
		return false, nil, io.EOF
	default:
	}
	if err := c.send(frameRequest, ch, ssh.Marshal(requestMessage{name, wantReply, payload})); err != nil || !wantReply {
		return false, nil, err
	}
	select {
	case m := <-a.answers:
		return m.OK, m.Payload, nil
	case <-a.over:
	}
	select {
	case m := <-a.answers: // which came before the end
		return m.OK, m.Payload, nil
	default:
		return false, nil, io.EOF
	}
}

// answer handles an answer. One that was not asked for is taken for the next, a second one is an error.
func (a asker) answer(content []byte) error {
	var m answerMessage
	if ssh.Unmarshal(content, &m) != nil {
		return errProtocol
	}
	select {
	case a.answers <- m:
		return nil
	default:
		return errProtocol
	}
}
