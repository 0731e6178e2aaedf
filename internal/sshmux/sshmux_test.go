package sshmux_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const timeout = time.Minute

// pair returns the two sides of a connection, whose stream has no buffer.
func pair(t *testing.T) (client, server *sshmux.Conn) {
	t.Helper()
	a, b := net.Pipe()
	made := make(chan *sshmux.Conn)
	go func() {
		c, err := sshmux.Server(b)
		if err != nil {
			t.Error(err)
		}
		made <- c
	}()
	client, err := sshmux.Client(a)
	if err != nil {
		t.Fatal(err)
	}
	server = <-made
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// open opens a channel and returns both ends, and the requests of the second one.
func open(t *testing.T, from, to *sshmux.Conn) (near, far *sshmux.Channel, requests <-chan *sshmux.Request) {
	t.Helper()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		n := <-to.Channels
		if n.ChannelType() != "session" || string(n.ExtraData()) != "extra" {
			t.Errorf("a channel of the type %q with %q", n.ChannelType(), n.ExtraData())
		}
		var err error
		if far, requests, err = n.Accept(); err != nil {
			t.Error(err)
		}
	}()
	near, asked, err := from.OpenChannel("session", []byte("extra"))
	if err != nil {
		t.Fatal(err)
	}
	go sshmux.Discard(asked)
	<-accepted
	return near, far, requests
}

// Data of many channels arrives as it is, in both directions at once, and each direction ends by itself.
func TestData(t *testing.T) {
	t.Parallel()
	client, server := pair(t)
	go sshmux.Discard(client.Requests)
	go func() {
		for n := range server.Channels {
			ch, requests, err := n.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			go sshmux.Discard(requests)
			go func() {
				_, _ = io.Copy(ch, ch)
				_, _ = io.Copy(ch.Stderr(), strings.NewReader("end"))
				_ = ch.CloseWrite() // of both
				_, _ = io.WriteString(ch.Stderr(), "more")
				ch.Close()
			}()
		}
	}()
	var all sync.WaitGroup
	for i, size := range []int{0, 1, 511, 512, 513, 4096, 32 << 10, 32<<10 + 1, 1 << 20, 5<<20 + 3} {
		all.Go(func() {
			ch, _, err := client.OpenChannel("x", nil)
			if err != nil {
				t.Error(err)
				return
			}
			sent := make([]byte, size)
			_, _ = rand.Read(sent)
			go func() {
				if i%2 == 0 {
					_, _ = ch.Write(sent)
				} else {
					_, _ = ch.ReadFrom(bytes.NewReader(sent))
				}
				_ = ch.CloseWrite()
			}()
			var got bytes.Buffer
			if i%3 == 0 {
				_, err = ch.WriteTo(&got)
			} else {
				_, err = io.Copy(&got, struct{ io.Reader }{ch})
			}
			if err != nil || !bytes.Equal(got.Bytes(), sent) {
				t.Errorf("%d bytes: got %d, %v", size, got.Len(), err)
			}
			if end, err := io.ReadAll(ch.Stderr()); string(end) != "end" || err != nil {
				t.Errorf("stderr: %q, %v", end, err)
			}
			if n, err := ch.Write([]byte("late")); err == nil {
				t.Errorf("%d bytes are written after the end", n)
			}
			ch.Close()
		})
	}
	all.Wait()
}

// A channel that is not read holds its sender back alone: requests of the channel pass as well.
func TestWindow(t *testing.T) {
	t.Parallel()
	client, server := pair(t)
	slow, far, requests := open(t, client, server)
	wrote := make(chan int, 1)
	go func() {
		n, _ := slow.Write(make([]byte, 3<<20))
		wrote <- n
	}()
	other, echo, _ := open(t, server, client)
	go func() { _, _ = io.Copy(echo, echo) }()
	if _, err := io.WriteString(other, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(other, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	go func() {
		r := <-requests
		_ = r.Reply(r.Type == "signal" && string(r.Payload) == "KILL", nil)
	}()
	if ok, err := slow.SendRequest("signal", true, []byte("KILL")); !ok || err != nil {
		t.Errorf("a request of a full channel: %v %v", ok, err)
	}
	select {
	case n := <-wrote:
		t.Errorf("%d bytes were sent that are not read", n)
	default:
	}
	if _, err := io.ReadFull(far, make([]byte, 3<<20)); err != nil {
		t.Error(err)
	}
	if n := <-wrote; n != 3<<20 {
		t.Errorf("%d bytes were sent", n)
	}
}

// Requests are answered one by one, and refusals keep their reason.
func TestRequests(t *testing.T) {
	t.Parallel()
	client, server := pair(t)
	go func() {
		for r := range server.Requests {
			_ = r.Reply(r.Type != "no", append([]byte("re: "), r.Payload...))
		}
	}()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			text := fmt.Sprint(i)
			ok, answer, err := client.SendRequest("yes", true, []byte(text))
			if !ok || string(answer) != "re: "+text || err != nil {
				t.Errorf("%v %q %v", ok, answer, err)
			}
		})
	}
	all.Wait()
	if ok, _, err := client.SendRequest("no", true, nil); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if _, _, err := client.SendRequest("big", true, make([]byte, 1<<20)); err == nil {
		t.Error("a request of 1 MiB is sent")
	}
	go func() {
		_ = (<-server.Channels).Reject(ssh.ResourceShortage, "no room")
	}()
	var refused *ssh.OpenChannelError
	if _, _, err := client.OpenChannel("session", nil); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage || refused.Message != "no room" {
		t.Errorf("a rejected channel: %v", err)
	}
}

// The end of a channel, and of the connection, reaches everything that waits for it.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(far *sshmux.Channel, server *sshmux.Conn){
		"the channel":    func(far *sshmux.Channel, _ *sshmux.Conn) { far.Close() },
		"the connection": func(_ *sshmux.Channel, server *sshmux.Conn) { server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := pair(t)
			near, far, requests := open(t, client, server)
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if n, err := near.Write(make([]byte, 8<<20)); err == nil {
					t.Errorf("wrote %d bytes", n)
				}
			})
			waiting.Go(func() {
				if n, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("read %d, %v", n, err)
				}
			})
			waiting.Go(func() {
				if ok, err := near.SendRequest("x", true, nil); ok || err == nil {
					t.Errorf("a request: %v, %v", ok, err)
				}
			})
			<-requests
			end(far, server)
			waiting.Wait()
			for range requests { // ends
			}
			if name == "the channel" {
				open(t, client, server) // another channel still opens
				return
			}
			for range client.Channels {
				t.Error("a channel of an ended connection")
			}
			for range client.Requests {
				t.Error("a request of an ended connection")
			}
			if _, _, err := client.OpenChannel("session", nil); err == nil {
				t.Error("a channel is opened")
			}
		})
	}
}

// An answer arrives although the channel ends right after it.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	client, server := pair(t)
	go func() {
		for n := range server.Channels {
			ch, requests, err := n.Accept()
			if err != nil {
				return
			}
			_ = (<-requests).Reply(true, nil)
			ch.Close()
		}
	}()
	for i := range 500 {
		ch, _, err := client.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := ch.SendRequest("exec", true, nil); !ok || err != nil {
			t.Fatalf("request %d: %v %v", i, ok, err)
		}
	}
}

// frame returns the bytes of a frame.
func frame(kind byte, id uint32, content string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(kind)<<24|uint32(len(content)))
	return append(binary.BigEndian.AppendUint32(b, id), content...)
}

// What does not follow the protocol ends the connection: the container can send anything.
func TestAttacks(t *testing.T) {
	t.Parallel()
	const opened, mine = "\x00\x00\x00\x07session", 2 // the client's channel 1 is open, the server opens 2
	for name, frames := range map[string][][]byte{
		"an unknown kind":                      {frame(99, 1, "")},
		"a kind of channels without one":       {frame(6, 0, "\x00\x00\x00\x01")},
		"an unknown channel":                   {frame(4, 77, "x")},
		"a request of an unknown channel":      {frame(8, 77, "\x00\x00\x00\x00\x00")},
		"a channel with the client's number":   {frame(1, 3, opened)},
		"a channel with the number 0":          {frame(1, 0, opened)},
		"a channel twice":                      {frame(1, mine, opened), frame(1, mine, opened)},
		"an open without its type":             {frame(1, mine, "\x00\x00")},
		"a request without its type":           {frame(8, 1, "")},
		"an answer that cannot be read":        {frame(9, 1, "")},
		"two answers without a question":       {frame(9, 1, "\x01"), frame(9, 1, "\x01")},
		"answers of the connection":            {frame(9, 0, "\x01"), frame(9, 0, "\x01")},
		"a second acceptance":                  {frame(2, 1, "")},
		"a refusal of an open channel":         {frame(3, 1, "\x00\x00\x00\x01\x00\x00\x00\x00")},
		"a window of three bytes":              {frame(6, 1, "\x00\x00\x01")},
		"a window above the limit":             {frame(6, 1, "\xff\xff\xff\xff")},
		"a frame of data above the limit":      {frame(4, 1, strings.Repeat("x", 32<<10+1))},
		"a message above the limit":            {frame(8, 1, strings.Repeat("x", 256<<10+1))},
		"more data than the window":            repeat(frame(4, 1, strings.Repeat("x", 32<<10-20)), 34),
		"more of both streams than the window": append(repeat(frame(4, 1, strings.Repeat("x", 32<<10-20)), 17), repeat(frame(5, 1, strings.Repeat("x", 32<<10-20)), 17)...),
		"data after the close":                 {frame(10, 1, ""), frame(4, 1, "x")},
		"a request after the close":            {frame(10, 1, ""), frame(8, 1, "\x00\x00\x00\x01x\x00")},
		"a close after the close":              {frame(10, 1, ""), frame(10, 1, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, theirs := hostile(t)
			ended := make(chan struct{})
			go func() { defer close(ended); _, _ = io.Copy(io.Discard, theirs) }()
			_ = theirs.SetWriteDeadline(time.Now().Add(timeout))
			for _, f := range frames {
				if _, err := theirs.Write(f); err != nil {
					break // it has ended before the last byte
				}
			}
			select {
			case <-ended:
			case <-time.After(timeout):
				t.Fatal("the connection continues")
			}
			for range client.Channels {
			}
		})
	}
}

func repeat(f []byte, n int) (all [][]byte) {
	for range n {
		all = append(all, f)
	}
	return all
}

// hostile returns a client with one open channel, and the stream of its server.
func hostile(t *testing.T) (*sshmux.Conn, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		hello := "BERTH-SSH 1\n"
		_, _ = io.ReadFull(theirs, make([]byte, len(hello)))
		_, _ = io.WriteString(theirs, hello)
		_, _ = io.ReadFull(theirs, make([]byte, 8+4+1)) // the open of channel 1
		_, _ = theirs.Write(frame(2, 1, ""))
	}()
	client, err := sshmux.Client(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); theirs.Close() })
	ch, requests, err := client.OpenChannel("s", nil)
	if err != nil {
		t.Fatal(err)
	}
	go sshmux.Discard(requests)
	go sshmux.Discard(client.Requests)
	t.Cleanup(func() { ch.Close() })
	return client, theirs
}

// Unread data in pieces of one byte needs about its own size of memory.
func TestSmallPieces(t *testing.T) {
	t.Parallel()
	client, server := pair(t)
	near, far, _ := open(t, client, server)
	const size = 200_000
	go func() {
		for i := range size {
			if _, err := near.Write([]byte{byte(i)}); err != nil {
				return
			}
		}
		near.Close()
	}()
	var pieces int
	wait.Until(t, "all is sent", func() bool { pieces = far.Pieces(); return pieces >= size/512 })
	all, err := io.ReadAll(far)
	if err != nil || len(all) != size || all[size-1] != byte((size-1)%256) {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	if pieces > size/512+1 {
		t.Errorf("%d bytes are in %d pieces", size, pieces)
	}
}

// Another program, or another version, is no server.
func TestHello(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "BERTH-SSH 9\n", "SSH-2.0-OpenSSH_9.9\r\n"} {
		ours, theirs := net.Pipe()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = io.WriteString(theirs, said)
			theirs.Close()
		}()
		if _, err := sshmux.Client(ours); err == nil || !strings.Contains(err.Error(), "not \"BERTH-SSH 1") {
			t.Errorf("%q: %v", said, err)
		}
	}
}
