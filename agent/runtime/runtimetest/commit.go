package runtimetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
)

// commit makes an image of a running container, starts another container from it, and repeats the
// commit without changes.
func (s Subject) commit(t *testing.T) {
	c := s.start(t, s.spec(t, "sleep", "60"))
	run := func(c runtime.Container, verb ...string) (string, int) {
		t.Helper()
		var out, errOut bytes.Buffer
		p, err := c.Exec(deadline(t), runtime.ExecSpec{Command: append([]string{"/bin/prog"}, verb...), Stdout: &out, Stderr: &errOut})
		if err != nil {
			t.Fatal(err)
		}
		code, err := p.Wait(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		return out.String() + errOut.String(), code
	}
	to := runtime.CommitSpec{Repository: s.Repository, PlainHTTP: true}
	save := func(c runtime.Container) runtime.Committed {
		t.Helper()
		got, err := c.Commit(deadline(t), to, func(runtime.Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := save(c); got.LayerBytes != 0 {
		t.Errorf("a container without changes has a layer of %d bytes", got.LayerBytes)
	}
	if _, code := run(c, "write", "/etc/note", "changed"); code != 0 {
		t.Fatalf("write: exit code %d", code)
	}
	first := save(c)
	if first.LayerBytes == 0 || first.Sent == 0 || first.Size < first.LayerBytes {
		t.Errorf("commit of a change: %+v", first)
	}
	if again := save(c); again.Digest != first.Digest || again.Sent != 0 {
		t.Errorf("the second commit without changes is %+v, the first was %+v", again, first)
	}

	spec := s.spec(t, "sleep", "60")
	spec.Image = s.Repository + "@" + first.Digest
	if _, err := s.Runtime.Pull(deadline(t), runtime.PullRequest{Reference: spec.Image, Digest: first.Digest, PlainHTTP: true}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	second := s.start(t, spec)
	if text, code := run(second, "cat", "/etc/note"); text != "changed" || code != 0 {
		t.Errorf("the file in a container of the image is %q, exit code %d", text, code)
	}
	if got := save(second); got.LayerBytes != 0 || got.Sent != 0 {
		t.Errorf("a commit of the new container: %+v", got)
	}
	s.commitRefused(t, c, to)
}

// commitRefused ends commits early. The container continues.
func (s Subject) commitRefused(t *testing.T, c runtime.Container, to runtime.CommitSpec) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Commit(ctx, to, func(runtime.Progress) {}); err == nil {
		t.Error("a cancelled commit returned no error")
	}
	limited := to
	limited.MaxBytes = 1
	if _, err := c.Commit(deadline(t), limited, func(runtime.Progress) {}); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("a layer above the limit: %v", err)
	}
	var out, errOut bytes.Buffer
	p, err := c.Exec(deadline(t), runtime.ExecSpec{Command: []string{"/bin/prog", "exit", "3"}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(deadline(t)); code != 3 || err != nil {
		t.Errorf("a command after refused commits: exit code %d, %v", code, err)
	}
}
