package portstream_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const timeout = time.Minute

// tcp is an agent whose kernels have the ports of this machine.
type tcp struct {
	address string
	served  atomic.Int64 // streams that have not ended
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func newAgent(t *testing.T) *tcp {
	t.Helper()
	l := listen(t)
	a := &tcp{address: l.Addr().String()}
	go func() {
		for {
			stream, err := l.Accept()
			if err != nil {
				return
			}
			a.served.Add(1)
			go func() {
				defer a.served.Add(-1)
				if call, err := portstream.Accept(stream); err == nil {
					call.Connect(t.Context(), connect)
				}
			}()
		}
	}()
	return a
}

func connect(_ context.Context, kernel string, port uint16) (net.Conn, error) {
	if kernel == uuid.Nil.String() {
		return nil, fmt.Errorf("kernel %s: %w", kernel, errdefs.ErrNotFound)
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
	}
	return c, nil
}

// Open implements portstream.Opener.
func (a *tcp) Open(context.Context) (net.Conn, error) { return net.Dial("tcp", a.address) }

// program listens on a port and runs do with each connection.
func program(t *testing.T, do func(c *net.TCPConn)) int {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				do(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func dial(t *testing.T, a portstream.Opener, port int) *portstream.Conn {
	t.Helper()
	c, err := portstream.Dial(t.Context(), a, uuid.New(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(timeout))
	return c
}

// Data of any size arrives as it is, in both directions at once, and each direction ends by itself.
func TestBothDirections(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for _, size := range []int{0, 1, 4095, 4096, 4097, 32 << 10, 32<<10 + 1, 5<<20 + 3} {
		sent := make([]byte, size)
		_, _ = rand.Read(sent)
		echo := program(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
		c := dial(t, a, echo)
		go func() {
			_, _ = io.Copy(c, bytes.NewReader(sent))
			_ = c.CloseWrite()
		}()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if _, err := c.Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write after CloseWrite: %v", err)
		}
		c.Close()
	}
	wait.Until(t, "all streams end", func() bool { return a.served.Load() == 0 })
}

// A program can answer after the end of its input.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	port := program(t, func(c *net.TCPConn) {
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes", len(all))
	})
	c := dial(t, newAgent(t), port)
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "5 bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Errors of the agent keep their class; nothing listens on the first port.
func TestRefusals(t *testing.T) {
	t.Parallel()
	l := listen(t)
	closed := l.Addr().(*net.TCPAddr).Port
	l.Close()
	a := newAgent(t)
	if _, err := portstream.Dial(t.Context(), a, uuid.New(), closed); !portstream.Refused(err) {
		t.Errorf("a port on which nothing listens: %v", err)
	}
	if _, err := portstream.Dial(t.Context(), a, uuid.Nil, closed); !errdefs.IsNotFound(err) || portstream.Refused(err) {
		t.Errorf("an unknown kernel: %v", err)
	}
	if _, err := portstream.Dial(t.Context(), &tcp{address: l.Addr().String()}, uuid.New(), closed); !portstream.Refused(err) {
		t.Errorf("an agent that cannot be reached: %v", err)
	}
	raw, err := net.Dial("tcp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = raw.Write(append([]byte{9}, make([]byte, 18)...))
	if answer, _ := io.ReadAll(raw); len(answer) < 4 || answer[0] == 0 || !bytes.Contains(answer, []byte("version 9")) {
		t.Errorf("another version: %q", answer)
	}
}

// An abort on one side ends the other side with an error, and not with the end of the data.
func TestAborts(t *testing.T) {
	t.Parallel()
	t.Run("the caller leaves", func(t *testing.T) {
		t.Parallel()
		ended := make(chan struct{})
		port := program(t, func(c *net.TCPConn) {
			defer close(ended)
			for { // as a download without end
				if _, err := c.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		a := newAgent(t)
		c := dial(t, a, port)
		_, _ = io.ReadFull(c, make([]byte, 1<<20))
		c.Close()
		select {
		case <-ended:
		case <-time.After(timeout):
			t.Error("the program still writes")
		}
		wait.Until(t, "the stream ends", func() bool { return a.served.Load() == 0 })
	})
	t.Run("the context ends", func(t *testing.T) {
		t.Parallel()
		port := program(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
		ctx, cancel := context.WithCancel(t.Context())
		c, err := portstream.Dial(ctx, newAgent(t), uuid.New(), port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cancel()
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("read %d, %v", n, err)
		}
	})
	t.Run("the agent ends", func(t *testing.T) {
		t.Parallel()
		l := listen(t)
		go func() {
			stream, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(stream, make([]byte, 19))
			_, _ = stream.Write([]byte{0, 0, 0, 0, 5, 'h', 'e'}) // not the whole frame
			stream.Close()
		}()
		c := dial(t, &tcp{address: l.Addr().String()}, 80)
		got, err := io.ReadAll(c)
		if string(got) != "he" || err == nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A deadline in the middle of a frame's length loses nothing.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.ReadFull(theirs, make([]byte, 19))
		_, _ = theirs.Write([]byte{0, 0, 0})
		_, _ = theirs.Write([]byte{0})
		time.Sleep(200 * time.Millisecond)
		_, _ = theirs.Write([]byte{2, 'o', 'k', 0, 0})
	}()
	c, err := portstream.Dial(t.Context(), opened{ours}, uuid.New(), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Read(make([]byte, 2)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the deadline: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	if got, err := io.ReadAll(c); string(got) != "ok" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

type opened struct{ net.Conn }

func (o opened) Open(context.Context) (net.Conn, error) { return o.Conn, nil }
