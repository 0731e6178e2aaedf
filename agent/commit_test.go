package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
)

// commit commits a kernel and returns the last message.
func (n *node) commit(ctx context.Context, r *agentpb.CommitKernelRequest) (*agentpb.CommitProgress, error) {
	stream, err := n.CommitKernel(ctx, r)
	if err != nil {
		return nil, err
	}
	for {
		p, err := stream.Recv()
		if err != nil || p.Done {
			return p, err
		}
	}
}

// TestCommit makes an image of a kernel, starts it on another agent, and repeats the commit.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	reg, host := registrytest.Serve(t, dir)
	key, err := pushtoken.KeyIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	reg.AllowPush(key)
	n := newNode(t, v1.Config{Env: []string{"PATH=/bin", "FROM=image"}})
	n.run(t)
	n.pull(t)
	k := n.request("serve", "127.0.0.1:8080")
	k.Environment = map[string]string{"TOKEN": "s3cr3t"}
	n.start(t, k)
	for path, text := range map[string]string{"/etc/note": "changed", "/.bash_history": "s3cr3t", "/home/work/data": "s3cr3t", "/tmp/scratch": "s3cr3t", "/etc/hosts": "s3cr3t"} {
		if out, code := n.exec(t, k.KernelId, "", "write", path, text); code != 0 {
			t.Fatalf("write %s: %q, %d", path, out, code)
		}
	}
	token, err := key.Sign(pushtoken.Grant{Repository: "users/a/env", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	r := &agentpb.CommitKernelRequest{
		Epoch: n.epoch, KernelId: k.KernelId, LaunchEpoch: k.LaunchEpoch, Repository: host + "/users/a/env", PlainHttp: true,
		Username: pushtoken.User, Password: token,
	}
	first, err := n.commit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if first.LayerBytes == 0 || first.SentBytes == 0 {
		t.Errorf("the first commit: %v", first)
	}
	if again, err := n.commit(t.Context(), r); err != nil || again.Digest != first.Digest || again.SentBytes != 0 {
		t.Errorf("a commit without changes: %v, %v", again, err)
	}
	other := proto.Clone(r).(*agentpb.CommitKernelRequest)
	other.Repository = host + "/users/b/env"
	if _, err := n.commit(t.Context(), other); err == nil {
		t.Error("the token permits another repository")
	}

	m := newNode(t, v1.Config{})
	m.run(t)
	m.image = host + "/users/a/env@" + first.Digest
	m.pull(t)
	started := m.request("serve", "127.0.0.1:8080")
	m.start(t, started)
	if out, code := m.exec(t, started.KernelId, "", "cat", "/etc/note"); out != "changed" || code != 0 {
		t.Errorf("the file on another agent is %q, %d", out, code)
	}
	if out, _ := m.exec(t, started.KernelId, "", "env"); strings.Contains(out, "s3cr3t") || !strings.Contains(out, "FROM=image") {
		t.Errorf("the environment on another agent is %q", out)
	}
	for _, path := range []string{"/.bash_history", "/home/work/data", "/tmp/scratch", "/etc/hosts"} {
		if out, code := m.exec(t, started.KernelId, "", "cat", path); code == 0 && strings.Contains(out, "s3cr3t") {
			t.Errorf("%s is in the image", path)
		}
	}
}

// TestKilledDuringACommit kills the agent while it sends an image, and cancels a commit.
func TestKilledDuringACommit(t *testing.T) {
	reached := make(chan struct{}, 100)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	defer hangs.Close()
	n := newNode(t, v1.Config{})
	kill := n.spawn(t)
	n.pull(t)
	k := n.request("serve", "127.0.0.1:8080")
	n.start(t, k)
	n.exec(t, k.KernelId, "", "write", "/etc/note", "changed")
	r := &agentpb.CommitKernelRequest{
		Epoch: n.epoch, KernelId: k.KernelId, LaunchEpoch: k.LaunchEpoch, PlainHttp: true,
		Repository: strings.TrimPrefix(hangs.URL, "http://") + "/users/a/env",
	}
	ended := make(chan error, 1)
	go func() { _, err := n.commit(t.Context(), r); ended <- err }()
	<-reached
	kill()
	if err := <-ended; err == nil {
		t.Error("the caller of a killed agent gets no error")
	}
	n.run(t)
	if out, code := n.exec(t, k.KernelId, "still here", "echo"); out != "still here" || code != 0 {
		t.Errorf("the kernel after the restart: %q, %d", out, code)
	}
	left := func() []string {
		list, err := filepath.Glob(filepath.Join(n.dir, "*", "commits", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left of the commit: %v", l)
	}
	for len(reached) > 0 {
		<-reached
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, err := n.commit(ctx, r); ended <- err }()
	<-reached
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("a cancelled commit: %v", err)
	}
	for end := time.Now().Add(timeout); len(left()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left of the cancelled commit: %v", left())
		}
	}
}
