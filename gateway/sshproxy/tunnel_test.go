package sshproxy

import (
	"context"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/portstream"
)

// tunnel returns what opens runners behind an agent in this process, which has opened a tunnel to the
// gateway: with TLS, over the loopback interface.
func (w *world) tunnel() func(context.Context) (io.ReadWriteCloser, error) {
	t := w.t
	ca, err := cluster.LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	peers := make(chan *cluster.Peer, 1)
	hub := cluster.NewHub(cluster.HubConfig{
		CA: ca, Managers: func() []string { return nil },
		Join:   func(context.Context, string, string, string) error { return nil },
		OnPeer: func(ctx context.Context, p *cluster.Peer) { peers <- p; <-ctx.Done() },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node, err := cluster.NewNode(cluster.NodeConfig{
		Role: cluster.RoleAgent, Name: "machine", Dir: t.TempDir(), Managers: []string{l.Addr().String()},
		JoinToken: "token", CAFingerprint: ca.Fingerprint(), Streams: w.serveStream,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	go func() { _ = hub.Serve(ctx, l); ended <- struct{}{} }()
	go func() { _ = node.Serve(ctx, grpc.NewServer()); ended <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	select {
	case p := <-peers:
		return func(ctx context.Context) (io.ReadWriteCloser, error) { return portstream.DialSSH(ctx, p, uuid.New()) }
	case <-time.After(long):
		t.Fatal("the agent does not connect")
		return nil
	}
}

// serveStream runs the runner as an agent does.
func (w *world) serveStream(_ context.Context, stream net.Conn) {
	defer stream.Close()
	call, err := portstream.Accept(stream)
	if err != nil {
		return
	}
	if _, err := call.Answer(nil); err != nil {
		return
	}
	cmd := exec.Command(program, "sshd")
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = stream, stream, time.Second
	if cmd.Start() != nil {
		return
	}
	w.mu.Lock()
	w.runners = append(w.runners, cmd.Process.Pid)
	w.mu.Unlock()
	_ = cmd.Wait()
}

// The whole way through a tunnel works as without one.
func TestThroughATunnel(t *testing.T) {
	w := newWorld(t)
	w.kernel = w.tunnel()
	out, errs, code := run(t, "in\n", "ssh", "-F", w.config(), "train@gw", "cat; echo e >&2; exit 7")
	if out != "in\n" || errs != "e\n" || code != 7 {
		t.Errorf("%q, %q, %d", out, errs, code)
	}
}
