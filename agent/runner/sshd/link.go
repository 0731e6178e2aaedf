package sshd

import (
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
)

// link is the connection to the client: the channels of the platform, or SSH.
type link interface {
	// OpenChannel opens a channel to the client, which has no requests.
	OpenChannel(kind string, extra []byte) (ssh.Channel, error)
	Close() error
}

// newChannel is a channel that the client opens.
type newChannel interface {
	ChannelType() string
	ExtraData() []byte
	Accept() (ssh.Channel, <-chan *sshmux.Request, error)
	Reject(reason ssh.RejectionReason, message string) error
}

// muxed is a link of the platform.
type muxed struct{ *sshmux.Conn }

// OpenChannel implements link.
func (m muxed) OpenChannel(kind string, extra []byte) (ssh.Channel, error) {
	ch, requests, err := m.Conn.OpenChannel(kind, extra)
	if err != nil {
		return nil, err
	}
	go sshmux.Discard(requests) // ends with the channel
	return ch, nil
}

// muxedChannel is a new channel of such a link.
type muxedChannel struct{ *sshmux.NewChannel }

// Accept implements newChannel.
func (n muxedChannel) Accept() (ssh.Channel, <-chan *sshmux.Request, error) {
	return n.NewChannel.Accept()
}

// encrypted is a link of SSH.
type encrypted struct{ *ssh.ServerConn }

// OpenChannel implements link.
func (e encrypted) OpenChannel(kind string, extra []byte) (ssh.Channel, error) {
	ch, requests, err := e.ServerConn.OpenChannel(kind, extra)
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(requests) // ends with the channel
	return ch, nil
}

// encryptedChannel is a new channel of such a link.
type encryptedChannel struct{ ssh.NewChannel }

// Accept implements newChannel.
func (n encryptedChannel) Accept() (ssh.Channel, <-chan *sshmux.Request, error) {
	ch, requests, err := n.NewChannel.Accept()
	if err != nil {
		return nil, nil, err
	}
	return ch, convert(requests, request), nil
}

func request(r *ssh.Request) *sshmux.Request {
	return &sshmux.Request{Type: r.Type, WantReply: r.WantReply, Payload: r.Payload, Answer: r.Reply}
}

// convert returns what a channel sends, in another type, until it is closed.
func convert[From, To any](from <-chan From, as func(From) To) <-chan To {
	to := make(chan To)
	go func() { // ends with the connection, whose channels are read to their end
		defer close(to)
		for v := range from {
			to <- as(v)
		}
	}()
	return to
}
