package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// upgrades sends a request for an upgrade, such as a WebSocket, over a new connection.
// http.Transport would keep two goroutines and two buffers for as long as the WebSocket is open.
type upgrades struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// upgradeTime bounds the time until the app has answered.
	upgradeTime = time.Minute
	// maxAnswerHeader bounds the header of an answer, as in the transport.
	maxAnswerHeader = 1 << 20
)

// RoundTrip implements http.RoundTripper. The body of an answer with the status 101 is the connection.
func (u upgrades) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := u.dial(r.Context(), "", "")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(r.Context(), func() { _ = c.Close() })
	resp, err := u.ask(r, c)
	if err != nil {
		stop()
		_ = c.Close()
		return nil, err
	}
	return resp, nil
}

func (u upgrades) ask(r *http.Request, c net.Conn) (*http.Response, error) {
	late := time.AfterFunc(upgradeTime, func() { _ = c.Close() })
	defer late.Stop()
	out := bufio.NewWriter(c)
	if err := r.Write(out); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	limited := &io.LimitedReader{R: c, N: maxAnswerHeader}
	in := bufio.NewReader(limited)
	resp, err := http.ReadResponse(in, r)
	for err == nil && resp.StatusCode >= 100 && resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
		resp, err = http.ReadResponse(in, r) // informational answers are not needed
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	limited.N = 1<<63 - 1
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = ending{resp.Body, c}
		return resp, nil
	}
	first := make([]byte, in.Buffered()) // a copy, so that the reader's buffer can be freed
	if _, err := io.ReadFull(in, first); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	resp.Body = &switched{Conn: c, first: first}
	return resp, nil
}

// ending is a body whose Close closes the connection.
type ending struct {
	io.ReadCloser
	conn net.Conn
}

// Close implements io.Closer. It does not read the rest of the body, as the body's own Close would.
func (e ending) Close() error {
	err := e.conn.Close()
	_ = e.ReadCloser.Close()
	return err
}

// switched is the connection to an app after the upgrade.
type switched struct {
	net.Conn
	first []byte // bytes that arrived with the answer
}

// Read implements io.Reader.
func (s *switched) Read(p []byte) (int, error) {
	if len(s.first) > 0 && len(p) > 0 {
		n := copy(p, s.first)
		if s.first = s.first[n:]; len(s.first) == 0 {
			s.first = nil
		}
		return n, nil
	}
	return s.Conn.Read(p)
}

// CloseWrite closes the direction to the app.
func (s *switched) CloseWrite() error {
	return closeWrite(s.Conn)
}

// closeWrite closes one direction of a connection that supports it.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
