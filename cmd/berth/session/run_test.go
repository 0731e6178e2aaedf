package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// cluster is a fake server with one session, whose state the test changes.
type cluster struct {
	*clitest.Server
	log       string
	exit      int
	reason    string
	terminate chan struct{} // closed by terminateSession
	cutEvery  int           // bytes of log per connection, 0 = all
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{Server: newServer(t), terminate: make(chan struct{}), reason: "COMPLETED"}
	c.Data("CreateSession", `{"payload":{"session":{"id":"s1","name":"job","status":"PENDING"}}}`)
	c.Answer["TerminateSession"] = func(json.RawMessage) string {
		close(c.terminate)
		return `{"payload":{"session":{"id":"s1","name":"job","status":"TERMINATING"}}}`
	}
	c.Stream["SessionChanged"] = c.changes
	c.Stream["KernelLogs"] = c.logs
	return c
}

func event(version int, status, more string) string {
	return fmt.Sprintf(`{"sessionChanged":{"id":"s1","version":%d,"name":"job","status":%q,"result":"UNDEFINED",
		"statusMessage":"","kernels":[{"id":"k1","role":"MAIN"}]%s}}`, version, status, more)
}

func (c *cluster) changes(ctx context.Context, _ json.RawMessage, send func(string)) bool {
	send(event(1, "PENDING", `,"pending":{"position":2,"summary":"no agent has 0.50 mock.shares free"}`))
	send(event(2, "CREATING", ""))
	send(event(3, "RUNNING", `,"startedAt":"2026-03-04T12:00:00Z"`))
	if c.log == "forever" {
		select {
		case <-c.terminate:
		case <-ctx.Done():
			return false
		}
	}
	send(event(4, "TERMINATED", fmt.Sprintf(`,"startedAt":"2026-03-04T12:00:00Z","exitCode":%d,"terminationReason":%q`, c.exit, c.reason)))
	<-ctx.Done()
	return false
}

func (c *cluster) logs(ctx context.Context, raw json.RawMessage, send func(string)) bool {
	var vars struct{ Offset int }
	_ = json.Unmarshal(raw, &vars)
	if c.log == "forever" {
		select {
		case <-c.terminate:
		case <-ctx.Done():
		}
		return true
	}
	from, to := vars.Offset, len(c.log)
	if c.cutEvery > 0 {
		to = min(from+c.cutEvery, to)
	}
	if to > from {
		text, _ := json.Marshal(c.log[from:to])
		send(fmt.Sprintf(`{"kernelLogs":{"text":%s,"offset":%d,"nextOffset":%d}}`, text, from, to))
	}
	return to == len(c.log)
}

func TestRunPassesOutputAndCode(t *testing.T) {
	c := newCluster(t)
	c.log, c.exit, c.reason, c.cutEvery = strings.Repeat("some output\n", 100), 3, "FAILED", 500
	var input struct{ Input map[string]any }
	create := c.Answer["CreateSession"]
	c.Answer["CreateSession"] = func(vars json.RawMessage) string {
		_ = json.Unmarshal(vars, &input)
		return create(vars)
	}
	r := c.RunWith(map[string]string{"BERTH_TOKEN": "x", "BERTH_URL": c.URL, "FROM_HERE": "h"}, "",
		"run", "python:3.11", "--cpu", "0.5", "--mem", "512m", "-r", "mock.shares=0.25",
		"-v", "data:/home/work/data:ro", "-e", "A=b=c", "-e", "FROM_HERE", "--priority", "0", "--", "python3", "-c", "x")
	if r.Code != 3 || r.Out != c.log {
		t.Errorf("code %d, %d bytes of %d; stderr %s", r.Code, len(r.Out), len(c.log), r.Errors)
	}
	if !strings.Contains(r.Errors, "job: pending, position 2: no agent has 0.50 mock.shares free\n") {
		t.Errorf("stderr does not say why it waited:\n%s", r.Errors)
	}
	if key, _ := input.Input["idempotencyKey"].(string); len(key) != 36 {
		t.Errorf("idempotency key %q", key)
	}
	delete(input.Input, "idempotencyKey")
	want := map[string]any{
		"image": "python:3.11", "type": "BATCH", "command": []any{"python3", "-c", "x"}, "priority": 0.0,
		"slots":       map[string]any{"cpu": "0.5", "mem": "536870912", "mock.shares": "0.25"},
		"mounts":      []any{map[string]any{"vfolder": "data", "target": "/home/work/data", "readOnly": true}},
		"environment": map[string]any{"A": "b=c", "FROM_HERE": "h"},
	}
	if diff := cmp.Diff(want, input.Input); diff != "" {
		t.Error(diff)
	}
}

func TestRunInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		keep  bool
		twice bool
		code  int
		ended bool
	}{
		"one interrupt ends the session":  {code: 143, ended: true},
		"keep leaves the session running": {keep: true, code: cli.ExitInterrupted},
		"twice leaves":                    {twice: true, code: cli.ExitInterrupted, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			cl.log, cl.exit, cl.reason = "forever", 143, "USER_REQUESTED"
			ended := make(chan struct{})
			terminate := cl.Answer["TerminateSession"]
			cl.Answer["TerminateSession"] = func(v json.RawMessage) string {
				close(ended)
				if c.twice {
					return `{"payload":{"session":{"id":"s1"}}}` // and nothing more happens
				}
				return terminate(v)
			}
			logs := cl.Stream["KernelLogs"]
			var once sync.Once
			cl.Stream["KernelLogs"] = func(ctx context.Context, v json.RawMessage, send func(string)) bool {
				once.Do(func() {
					interrupt(t)
					if c.twice {
						<-ended
						interrupt(t)
					}
				})
				return logs(ctx, v, send)
			}
			args := []string{"run", "img", "--", "sleep"}
			if c.keep {
				args = []string{"run", "img", "--keep", "--", "sleep"}
			}
			r := cl.Run(args...)
			if r.Code != c.code || cl.Count("TerminateSession") > 0 != c.ended {
				t.Errorf("code %d, want %d; %d terminations; stderr %s", r.Code, c.code, cl.Count("TerminateSession"), r.Errors)
			}
		})
	}
}

func interrupt(t *testing.T) {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Error(err)
	}
}

func TestRunFailures(t *testing.T) {
	for name, c := range map[string]struct {
		prepare  func(*cluster)
		args     []string
		wantText string
	}{
		"refused": {
			prepare: func(c *cluster) {
				c.Data("CreateSession", `{"code":"INVALID_ARGUMENT","message":"there is no image nope"}`)
			},
			wantText: "berth: there is no image nope (request r-1)\n",
		},
		"never started": {
			prepare: func(c *cluster) {
				c.Stream["SessionChanged"] = func(_ context.Context, _ json.RawMessage, send func(string)) bool {
					send(event(2, "ERROR", `,"terminationReason":"IMAGE_PULL_FAILED"`))
					return true
				}
			},
			wantText: "berth: session job ended without an exit code: image_pull_failed\n",
		},
		"access lost": {
			prepare: func(c *cluster) {
				delete(c.Stream, "SessionChanged")
				c.Data("SessionChanged", `{"code":"UNAUTHENTICATED","message":"the token was revoked"}`)
			},
			wantText: "berth: session job can no longer be followed, but may still run: the token was revoked (request r-1)\n",
		},
		"bad amount": {args: []string{"--cpu", "lots"}, wantText: `berth: slot cpu: "lots": not a number (see: berth run --help)` + "\n"},
		"bad flag":   {args: []string{"--nope"}, wantText: "berth: unknown flag: --nope (see: berth run --help)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			if c.prepare != nil {
				c.prepare(cl)
			}
			r := cl.Run(append(append([]string{"run", "img", "-q"}, c.args...), "--", "true")...)
			if r.Code != cli.ExitOwnFailure || r.Errors != c.wantText {
				t.Errorf("code %d, stderr %q, want %q", r.Code, r.Errors, c.wantText)
			}
		})
	}
}

// A server that stops ends the stream of a log in the same way as a log that is complete.
func TestRunOutlastsServerRestart(t *testing.T) {
	c := newCluster(t)
	c.log = "before the restart\nafter\n"
	restarted := make(chan struct{})
	logs := c.Stream["KernelLogs"]
	var once atomic.Bool
	c.Stream["KernelLogs"] = func(ctx context.Context, v json.RawMessage, send func(string)) bool {
		if !once.Swap(true) {
			send(`{"kernelLogs":{"text":"before ","offset":0,"nextOffset":7}}`)
			close(restarted)
			return true
		}
		return logs(ctx, v, send)
	}
	changes := c.Stream["SessionChanged"]
	var first atomic.Bool
	c.Stream["SessionChanged"] = func(ctx context.Context, v json.RawMessage, send func(string)) bool {
		if !first.Swap(true) {
			send(event(3, "RUNNING", `,"startedAt":"2026-03-04T12:00:00Z"`))
			<-restarted
			return true
		}
		return changes(ctx, v, send)
	}
	done := make(chan clitest.Result, 1)
	go func() { done <- c.Run("run", "img", "-q", "--", "true") }()
	select {
	case r := <-done:
		if r.Code != 0 || r.Out != c.log {
			t.Errorf("code %d, output %q, stderr %q", r.Code, r.Out, r.Errors)
		}
	case <-time.After(wait.Timeout):
		t.Fatal("run does not end")
	}
}

func TestRunDetached(t *testing.T) {
	c := newCluster(t)
	if r := c.Run("run", "img", "-d", "--", "true"); r.Code != 0 || r.Out != "job\n" {
		t.Errorf("%+v", r)
	}
}
