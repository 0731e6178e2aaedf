package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// Streams of bytes and calls share a tunnel: data arrives as it is while calls are answered.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	cfg := s.node(t, "n1", m.addr)
	ended := make(chan struct{}, 100)
	cfg.Streams = func(ctx context.Context, stream net.Conn) {
		defer stream.Close()
		_, _ = io.Copy(stream, stream)
		if ctx.Err() != nil {
			ended <- struct{}{}
		}
	}
	_, stop := serve(t, cfg)
	p := m.next(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			stream, err := p.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			sent, got := make([]byte, 300_000), make([]byte, 300_000)
			_, _ = rand.Read(sent)
			go func() { _, _ = stream.Write(sent) }()
			if _, err := io.ReadFull(stream, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("other data came back: %v", err)
			}
			if err := call(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()

	stream, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Write([]byte("x"))
	_, _ = io.ReadFull(stream, make([]byte, 1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_ = stream.SetReadDeadline(time.Now().Add(timeout))
	if _, err := stream.Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlives its tunnel")
	}
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Error("the context of a stream outlives its tunnel")
	}
}

// A node without Streams refuses them, and answers calls.
func TestNoStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	_, _ = serve(t, s.node(t, "n1", m.addr))
	p := m.next(t)
	stream, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Write(make([]byte, 100)) // more than the preface of HTTP/2
	_ = stream.SetReadDeadline(time.Now().Add(timeout))
	if _, err := io.Copy(io.Discard, stream); err != nil {
		t.Errorf("the stream is not closed: %v", err)
	}
	if err := call(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// writes counts the bytes that are written to a connection.
type writes struct {
	net.Conn
	mu    sync.Mutex
	sizes []int
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.sizes = append(w.sizes, len(b))
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// The header of a frame and its data are one write.
func TestFramesAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	counted := &writes{Conn: a}
	client, err := yamux.Client(&joined{Conn: counted}, yamux.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := yamux.Server(b, yamux.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	stream, err := client.Open()
	if err != nil {
		t.Fatal(err)
	}
	const size = 10_000
	for range 5 {
		if _, err := stream.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	peer, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(peer, make([]byte, 5*size)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "five frames", func() bool {
		counted.mu.Lock()
		defer counted.mu.Unlock()
		frames := 0
		for _, n := range counted.sizes {
			if n == size+frameHeader {
				frames++
			} else if n != frameHeader { // pings and windows
				t.Fatalf("a write of %d bytes", n)
			}
		}
		return frames == 5
	})
}

// The records of a frame below TLS are one write, and small frames are not held.
func TestRecordsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	ca, err := newCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.server("m1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	received := make(chan []byte, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		server := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{*cert}})
		defer server.Close()
		all, _ := io.ReadAll(server)
		received <- all
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	counted := &writes{Conn: raw}
	conn := tls.Client(&gathered{Conn: counted}, &tls.Config{RootCAs: ca.pool(), ServerName: serverName})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	j := join(conn)
	var sent []byte
	const frames = 40 // the first records are smaller
	for range frames {
		head := make([]byte, frameHeader)
		binary.BigEndian.PutUint32(head[8:], 64<<10)
		data := make([]byte, 64<<10)
		_, _ = rand.Read(data)
		before := counted.count()
		for _, b := range [][]byte{head, data} {
			if n, err := j.Write(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
			sent = append(sent, b...)
		}
		if n := counted.count() - before; n != 1 {
			t.Errorf("a frame is %d writes", n)
		}
	}
	ping := make([]byte, frameHeader)
	if _, err := j.Write(ping); err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseWrite()
	if got := <-received; !bytes.Equal(got, append(sent, ping...)) {
		t.Errorf("%d other bytes arrive", len(got))
	}
	raw.Close()
	if _, err := j.write(make([]byte, 64<<10)); err == nil {
		t.Error("a write to a closed connection has no error")
	}
}

func (w *writes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sizes)
}
