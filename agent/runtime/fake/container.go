package fake

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/logs"
	"github.com/berthhq/berth/agent/runtime"
)

// container implements runtime.Container.
type container struct {
	host   *Host
	spec   runtime.Spec
	labels map[string]string
	env    map[string]string

	mu      sync.Mutex
	started bool
	main    *process
	removed bool
	refuse  int // the number of Remove calls that fail
	oom     uint64
	folders map[string]string // target to ro or rw; removed mounts are missing
	files   map[string]string // written outside of folders, and those of a committed image
	before  map[string]string // those of the image
}

func newContainer(h *Host, s runtime.Spec, labels, env map[string]string) *container {
	c := &container{host: h, spec: s, labels: labels, env: env, main: newProcess()}
	c.refuse, _ = strconv.Atoi(env[FailRemove])
	c.mountFolders()
	return c
}

func (c *container) ID() string                { return c.spec.ID }
func (c *container) Labels() map[string]string { return c.labels }

func (c *container) gone() error {
	if c.removed {
		return fmt.Errorf("container %s: %w", c.spec.ID, errdefs.ErrNotFound)
	}
	return nil
}

func (c *container) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.gone(); err != nil {
		return err
	}
	if msg, ok := c.env[FailStart]; ok {
		return fmt.Errorf("%s: %w", msg, errdefs.ErrInternal)
	}
	log, err := logs.NewWriter(c.spec.Log.Dir, c.spec.Log.FileBytes, c.spec.Log.Files)
	if err != nil {
		return err
	}
	c.started = true
	verb := c.own(workload(c.spec.Args))
	if verb[0] == "alloc" && len(verb) > 1 {
		if mib, _ := strconv.ParseInt(verb[1], 10, 64); c.spec.Resources.Memory > 0 && mib<<20 > c.spec.Resources.Memory {
			c.oom++
			c.main.end(137)
		}
	}
	c.main.run(verb, nil, log)
	return nil
}

func (c *container) State(context.Context) (runtime.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return runtime.State{Phase: runtime.Gone}, nil
	}
	if !c.started {
		return runtime.State{Phase: runtime.Created, PID: 1}, nil
	}
	select {
	case <-c.main.done:
		return runtime.State{Phase: runtime.Exited, Exit: c.main.exit}, nil
	default:
		return runtime.State{Phase: runtime.Running, PID: 1}, nil
	}
}

func (c *container) Wait(ctx context.Context) (runtime.Exit, error) {
	c.mu.Lock()
	err := c.gone()
	c.mu.Unlock()
	if err != nil {
		return runtime.Exit{}, err
	}
	select {
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	case <-c.main.done:
		return c.main.exit, nil
	}
}

func (c *container) Kill(ctx context.Context, s syscall.Signal) error {
	c.mu.Lock()
	err := c.gone()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.main.Kill(ctx, s)
}

// own returns the part of a verb for this kernel of a session: "each 0 3" means that the first
// kernel exits with 0 and the second with 3. An argument that is not a number means that the kernel
// keeps running.
func (c *container) own(verb []string) []string {
	if verb[0] != "each" {
		return verb
	}
	index, _ := strconv.Atoi(c.env["BERTH_CLUSTER_IDX"])
	if index+1 >= len(verb) {
		return []string{"run"}
	}
	if _, err := strconv.Atoi(verb[index+1]); err != nil {
		return []string{"run"}
	}
	return []string{"exit", verb[index+1]}
}

func (c *container) Exec(_ context.Context, e runtime.ExecSpec) (runtime.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.gone(); err != nil {
		return nil, err
	}
	if len(e.Command) < 2 || e.Command[0] != "/bin/prog" {
		return nil, fmt.Errorf("command %q: %w", e.Command, errdefs.ErrInvalidArgument)
	}
	p := newProcess()
	if code, ok := c.touch(e.Command[1:], e.Stdout); ok {
		p.end(code)
	}
	p.run(e.Command[1:], e.Stdin, e.Stdout)
	return p, nil
}

func (c *container) Stats(context.Context) (runtime.Stats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.gone(); err != nil {
		return runtime.Stats{}, err
	}
	return runtime.Stats{CPU: time.Second, Memory: 1 << 20, Pids: 1, OOMKills: c.oom}, nil
}

func (c *container) Remove(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return fmt.Errorf("remove container %s: device or resource busy: %w", c.spec.ID, errdefs.ErrUnavailable)
	}
	c.removed = true
	c.main.end(137)
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.host.containers[c.spec.ID] == c {
		delete(c.host.containers, c.spec.ID)
	}
	return nil
}

// process implements runtime.Process.
type process struct {
	once        sync.Once
	done        chan struct{}
	exit        runtime.Exit
	ignoresTerm bool
}

func newProcess() *process { return &process{done: make(chan struct{})} }

func (p *process) end(code int) {
	p.once.Do(func() {
		p.exit = runtime.Exit{Code: code, Time: time.Now()}
		close(p.done)
	})
}

// run simulates a verb. A process with an unknown verb runs until it is killed.
func (p *process) run(verb []string, in io.Reader, out io.Writer) {
	argument := 0
	if len(verb) > 1 {
		argument, _ = strconv.Atoi(verb[1])
	}
	switch verb[0] {
	case "exit":
		p.end(argument)
	case "sleep":
		time.AfterFunc(time.Duration(argument)*time.Second, func() { p.end(0) })
	case "ignore-term":
		p.ignoresTerm = true
	case "lines":
		for i := range argument {
			fmt.Fprintf(out, "line %06d of the output\n", i)
		}
		p.end(0)
	case "echo":
		if in != nil {
			_, _ = io.Copy(out, in)
		}
		p.end(0)
	}
}

func (p *process) Wait(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-p.done:
		return p.exit.Code, nil
	}
}

func (p *process) Kill(_ context.Context, s syscall.Signal) error {
	if !p.ignoresTerm || s == syscall.SIGKILL {
		p.end(128 + int(s))
	}
	return nil
}

func (p *process) Resize(context.Context, uint32, uint32) error { return nil }
