// Package runtimetest is the suite that every runtime must pass, with its tools for tests of the
// agent: an in-memory image registry, an image with one static program, and the real runtime's
// programs.
package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/logs"
	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
)

const goarch = goruntime.GOARCH

// Subject is the runtime under test.
type Subject struct {
	Runtime runtime.Runtime
	// Image is a reference that can be pulled, and Digest its digest.
	Image, Digest string
	// Repository is one that images can be sent to and pulled from without credentials.
	Repository string
	// Again returns another instance of the same runtime, as after a restart of the agent.
	Again func(t *testing.T) runtime.Runtime
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Run("pull", s.pull)
	t.Run("exit codes", s.exitCodes)
	t.Run("kill", s.kill)
	t.Run("out of memory", s.outOfMemory)
	t.Run("exec", s.exec)
	t.Run("found again", s.foundAgain)
	t.Run("remove", s.remove)
	t.Run("ready", s.ready)
	t.Run("refusals", s.refusals)
	t.Run("parallel", s.parallel)
	t.Run("remount", s.remount)
	t.Run("commit", s.commit)
}

var sequence struct {
	sync.Mutex
	n int
}

// spec describes a container that runs prog with args.
func (s Subject) spec(t *testing.T, args ...string) runtime.Spec {
	sequence.Lock()
	sequence.n++
	id := fmt.Sprintf("suite-%d", sequence.n)
	sequence.Unlock()
	return runtime.Spec{
		ID: id, Image: s.Image, Hostname: id, Cwd: "/", Args: append([]string{"/bin/prog"}, args...),
		Env: []string{"PATH=/bin"}, CgroupPath: "/berth-test/" + id,
		Labels:    map[string]string{runtime.LabelKernel: id},
		Resources: runtime.Resources{MilliCPU: 500, Memory: 64 << 20, Pids: 64},
		Log:       runner.LogSpec{Dir: filepath.Join(t.TempDir(), "log"), FileBytes: 1 << 20, Files: 2},
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (s Subject) start(t *testing.T, spec runtime.Spec) runtime.Container {
	t.Helper()
	ctx := deadline(t)
	c, err := s.Runtime.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func wait(t *testing.T, c runtime.Container) runtime.Exit {
	t.Helper()
	exit, err := c.Wait(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func (s Subject) pull(t *testing.T) {
	ctx := deadline(t)
	if _, err := s.Runtime.Image(ctx, s.Image); !errdefs.IsNotFound(err) {
		t.Errorf("image before the pull: %v", err)
	}
	req := runtime.PullRequest{Reference: s.Image, Digest: "sha256:" + strings.Repeat("0", 64), PlainHTTP: true}
	ignore := func(runtime.Progress) {}
	if _, err := s.Runtime.Pull(ctx, req, ignore); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("pull with another digest: %v", err)
	}
	req.Digest = s.Digest
	for range 2 {
		img, err := s.Runtime.Pull(ctx, req, ignore)
		if err != nil {
			t.Fatal(err)
		}
		if img.Digest != s.Digest || img.Reference != s.Image {
			t.Errorf("pulled %+v", img)
		}
	}
	list, err := s.Runtime.Images(ctx)
	if err != nil || len(list) != 1 {
		t.Errorf("images %+v, %v", list, err)
	}
	missing := runtime.PullRequest{Reference: s.Image + "-none", PlainHTTP: true}
	if _, err := s.Runtime.Pull(ctx, missing, ignore); !errdefs.IsNotFound(err) {
		t.Errorf("pull of a missing image: %v", err)
	}
}

func (s Subject) exitCodes(t *testing.T) {
	for _, code := range []int{0, 1, 42, 255} {
		spec := s.spec(t, "exit", fmt.Sprint(code))
		c := s.start(t, spec)
		if exit := wait(t, c); exit.Code != code || time.Since(exit.Time) > time.Minute {
			t.Errorf("exit %+v, want %d", exit, code)
		}
		state, err := c.State(deadline(t))
		if err != nil || state.Phase != runtime.Exited || state.Exit.Code != code {
			t.Errorf("state %+v, %v", state, err)
		}
	}
	spec := s.spec(t, "lines", "3")
	c := s.start(t, spec)
	wait(t, c)
	if err := c.Remove(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r := logs.NewReader(spec.Log.Dir, 0)
	defer r.Close()
	buf := make([]byte, 1000)
	n, err := r.Read(buf)
	if got := string(buf[:n]); strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, "line 000000") {
		t.Errorf("log %q, %v", got, err)
	}
}

func (s Subject) kill(t *testing.T) {
	c := s.start(t, s.spec(t, "sleep", "60"))
	state, err := c.State(deadline(t))
	if err != nil || state.Phase != runtime.Running || state.PID == 0 {
		t.Errorf("state %+v, %v", state, err)
	}
	if err := c.Kill(deadline(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, c); exit.Code != 137 {
		t.Errorf("exit %+v", exit)
	}
}

func (s Subject) outOfMemory(t *testing.T) {
	c := s.start(t, s.spec(t, "alloc", "200"))
	if exit := wait(t, c); exit.Code != 137 {
		t.Errorf("exit %+v", exit)
	}
	stats, err := c.Stats(deadline(t))
	if err != nil || stats.OOMKills == 0 {
		t.Errorf("stats after the end: %+v, %v", stats, err)
	}
}

func (s Subject) exec(t *testing.T) {
	c := s.start(t, s.spec(t, "sleep", "60"))
	var out, errOut bytes.Buffer
	p, err := c.Exec(deadline(t), runtime.ExecSpec{
		Command: []string{"/bin/prog", "echo"}, Stdin: strings.NewReader("over and back"), Stdout: &out, Stderr: &errOut,
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(deadline(t)); code != 0 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	if out.String() != "over and back" || errOut.Len() > 0 {
		t.Errorf("output %q, errors %q", &out, &errOut)
	}
	p, err = c.Exec(deadline(t), runtime.ExecSpec{Command: []string{"/bin/prog", "exit", "9"}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(deadline(t)); code != 9 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	p, err = c.Exec(deadline(t), runtime.ExecSpec{Command: []string{"/bin/prog", "sleep", "60"}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(deadline(t), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if code, err := p.Wait(deadline(t)); code != 137 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	if _, err := c.Exec(deadline(t), runtime.ExecSpec{Command: []string{"/bin/none"}, Stdout: &out, Stderr: &errOut}); !errdefs.IsInvalidArgument(err) {
		t.Errorf("command that does not exist: %v", err)
	}
}

func (s Subject) foundAgain(t *testing.T) {
	spec := s.spec(t, "sleep", "60")
	ended := s.spec(t, "exit", "5")
	s.start(t, spec)
	wait(t, s.start(t, ended))

	list, err := s.Again(t).Containers(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]runtime.Container{}
	for _, c := range list {
		found[c.Labels()[runtime.LabelKernel]] = c
	}
	if len(found) != 2 || found[spec.ID] == nil || found[ended.ID] == nil {
		t.Fatalf("found %v", found)
	}
	if exit := wait(t, found[ended.ID]); exit.Code != 5 {
		t.Errorf("exit code after restart: %+v", exit)
	}
	var out bytes.Buffer
	p, err := found[spec.ID].Exec(deadline(t), runtime.ExecSpec{Command: []string{"/bin/prog", "exit", "3"}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(deadline(t)); code != 3 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	if err := found[spec.ID].Kill(deadline(t), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if exit := wait(t, found[spec.ID]); exit.Code != 137 {
		t.Errorf("exit %+v", exit)
	}
}

func (s Subject) remove(t *testing.T) {
	ctx := deadline(t)
	for name, start := range map[string]bool{"created": false, "running": true} {
		spec := s.spec(t, "sleep", "60")
		c, err := s.Runtime.Create(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if start {
			if err := c.Start(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := c.Remove(ctx); err != nil {
				t.Errorf("remove %s: %v", name, err)
			}
		}
		if _, err := c.Wait(ctx); !errdefs.IsNotFound(err) {
			t.Errorf("wait for a removed container: %v", err)
		}
	}
	list, err := s.Runtime.Containers(ctx)
	if err != nil || len(list) != 0 {
		t.Errorf("containers left: %v, %v", list, err)
	}
}

// ready makes what the spec names on the host only when Create waits for it.
func (s Subject) ready(t *testing.T) {
	ctx := deadline(t)
	spec := s.spec(t, "exit", "0")
	spec.Owned = []string{filepath.Join(t.TempDir(), "home")}
	unable := fmt.Errorf("no disk: %w", errdefs.ErrResourceExhausted)
	spec.Ready = func() error { return unable }
	if _, err := s.Runtime.Create(ctx, spec); !errors.Is(err, unable) {
		t.Errorf("create: %v, want %v", err, unable)
	}
	list, err := s.Again(t).Containers(ctx)
	if err != nil || len(list) != 0 {
		t.Errorf("containers left: %v, %v", list, err)
	}
	spec.Ready = func() error { return os.Mkdir(spec.Owned[0], 0o700) }
	if exit := wait(t, s.start(t, spec)); exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
}

func (s Subject) refusals(t *testing.T) {
	ctx := deadline(t)
	spec := s.spec(t, "exit", "0")
	spec.Image += "-none"
	if _, err := s.Runtime.Create(ctx, spec); !errdefs.IsNotFound(err) {
		t.Errorf("missing image: %v", err)
	}
	spec = s.spec(t, "sleep", "60")
	s.start(t, spec)
	if _, err := s.Runtime.Create(ctx, spec); !errdefs.IsAlreadyExists(err) {
		t.Errorf("second container of one id: %v", err)
	}
}

func (s Subject) parallel(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		spec := s.spec(t, "exit", "4")
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c, err := s.Runtime.Create(ctx, spec)
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Start(ctx); err != nil {
				t.Error(err)
			}
			if exit, err := c.Wait(ctx); err != nil || exit.Code != 4 {
				t.Errorf("exit %+v, %v", exit, err)
			}
			if err := c.Remove(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
