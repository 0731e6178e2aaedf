// Package fake is a runtime without containers for fast tests. It passes the same suite as the real
// one. Its input controls it: the verbs of the suite's test program simulate workloads, and
// environment variables simulate failures of the runtime itself.
package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runtime"
)

// Environment variables of a container that control the fake.
const (
	FailCreate  = "FAKE_FAIL_CREATE"  // Create returns an error with this message
	Refuse      = "FAKE_REFUSE"       // Create returns InvalidArgument with this message
	FailStart   = "FAKE_FAIL_START"   // Start returns an error with this message
	FailRemove  = "FAKE_FAIL_REMOVE"  // this number of Remove calls fail
	CreateDelay = "FAKE_CREATE_DELAY" // Create takes this long unless cancelled
	FailCommit  = "FAKE_FAIL_COMMIT"  // Commit returns FailedPrecondition with this message
	CommitDelay = "FAKE_COMMIT_DELAY" // Commit takes this long unless cancelled
)

// Host is the state that survives an agent: images and containers.
type Host struct {
	mu         sync.Mutex
	registry   map[string]runtime.Image
	images     map[string]runtime.Image
	containers map[string]*container
	contents   map[string]map[string]string // files of committed images, by digest
	created    int
}

// NewHost returns a host whose registry contains the images.
func NewHost(images ...runtime.Image) *Host {
	h := &Host{registry: map[string]runtime.Image{}, images: map[string]runtime.Image{}, containers: map[string]*container{}, contents: map[string]map[string]string{}}
	for _, img := range images {
		h.registry[img.Reference] = img
	}
	return h
}

// Created returns the number of containers that were ever created.
func (h *Host) Created() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.created
}

// Runtime is one agent's connection to a host.
type Runtime struct {
	host  *Host
	agent string
}

var _ runtime.Runtime = (*Runtime)(nil)

// New connects an agent to the host.
func New(h *Host, agent string) *Runtime { return &Runtime{h, agent} }

// Close does nothing: containers continue.
func (r *Runtime) Close() error { return nil }

// Answers always returns nil.
func (r *Runtime) Answers(context.Context) error { return nil }

// Pull copies an image from the registry.
func (r *Runtime) Pull(_ context.Context, req runtime.PullRequest, progress func(runtime.Progress)) (runtime.Image, error) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	img, ok := r.host.offered(req)
	if !ok {
		return runtime.Image{}, fmt.Errorf("image %s: %w", req.Reference, errdefs.ErrNotFound)
	}
	if req.Digest != "" && req.Digest != img.Digest {
		return runtime.Image{}, fmt.Errorf("image %s is %s: %w", req.Reference, img.Digest, errdefs.ErrFailedPrecondition)
	}
	progress(runtime.Progress{Phase: "downloading", Done: 1, Total: 1})
	r.host.images[req.Reference] = img
	return img, nil
}

// Image returns a pulled image.
func (r *Runtime) Image(_ context.Context, reference string) (runtime.Image, error) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	img, ok := r.host.images[reference]
	if !ok {
		return img, fmt.Errorf("image %s is not on this node: %w", reference, errdefs.ErrNotFound)
	}
	return img, nil
}

// Images returns the pulled images.
func (r *Runtime) Images(context.Context) ([]runtime.Image, error) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	var out []runtime.Image
	for _, img := range r.host.images {
		out = append(out, img)
	}
	slices.SortFunc(out, func(a, b runtime.Image) int { return strings.Compare(a.Reference, b.Reference) })
	return out, nil
}

// Containers returns the agent's containers.
func (r *Runtime) Containers(context.Context) ([]runtime.Container, error) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	var out []runtime.Container
	for _, c := range r.host.containers {
		if c.labels[runtime.LabelAgent] == r.agent {
			out = append(out, c)
		}
	}
	return out, nil
}

// Create creates a container unless its environment requests a failure.
func (r *Runtime) Create(ctx context.Context, s runtime.Spec) (runtime.Container, error) {
	env := environment(s.Env)
	if d, err := time.ParseDuration(env[CreateDelay]); err == nil {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if msg, ok := env[FailCreate]; ok {
		return nil, fmt.Errorf("%s: %w", msg, errdefs.ErrInternal)
	}
	if msg, ok := env[Refuse]; ok {
		return nil, fmt.Errorf("%s: %w", msg, errdefs.ErrPermissionDenied)
	}
	if s.Edit != nil {
		if err := s.Edit(&specs.Spec{Process: &specs.Process{}, Linux: &specs.Linux{Resources: &specs.LinuxResources{}}}); err != nil {
			return nil, err
		}
	}
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			return nil, err
		}
	}
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	img, ok := r.host.images[s.Image]
	if !ok {
		return nil, fmt.Errorf("image %s is not on this node: %w", s.Image, errdefs.ErrNotFound)
	}
	if _, ok := r.host.containers[s.ID]; ok {
		return nil, fmt.Errorf("container %s: %w", s.ID, errdefs.ErrAlreadyExists)
	}
	labels := map[string]string{runtime.LabelAgent: r.agent}
	for k, v := range s.Labels {
		labels[k] = v
	}
	c := newContainer(r.host, s, labels, env)
	c.before = r.host.contents[img.Digest]
	if c.files = maps.Clone(c.before); c.files == nil {
		c.files = map[string]string{}
	}
	r.host.containers[s.ID] = c
	r.host.created++
	return c, nil
}

func environment(list []string) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

// workload returns the arguments of prog, without the runner before it.
func workload(args []string) []string {
	if len(args) >= 2 && args[0] == runner.Path && args[1] == "init" {
		args = args[2:]
	}
	if len(args) < 2 {
		return []string{"idle"}
	}
	return args[1:]
}
