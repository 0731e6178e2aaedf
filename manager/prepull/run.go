package prepull

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/task"
)

const (
	// atOnce limits the agents that pull an image for a task at the same time. They fetch from each other, so it
	// does not burden the registry.
	atOnce = 64
	// pullTimeout limits the pull of one agent.
	pullTimeout = 2 * time.Hour
	// named limits the agents that a message names.
	named = 5
)

// runner runs the tasks.
type runner struct{ *Service }

// Run implements task.Handler. A repeated run has nothing to do on agents that have the image.
func (r runner) Run(ctx context.Context, p *task.Progress, input []byte) error {
	var w work
	if err := json.Unmarshal(input, &w); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	ctx = viewer.SystemContext(ctx)
	if w.Window == nil {
		return r.pullAll(ctx, p, w)
	}
	now := r.Now()
	open, change, err := w.Window.at(now)
	if err != nil {
		return err
	}
	if !open {
		return task.At(change, "It continues at %s.", w.Window.show(change))
	}
	within, cancel := context.WithTimeout(ctx, change.Sub(now))
	defer cancel()
	err = r.pullAll(within, p, w)
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return err
	}
	_, change, err = w.Window.at(change)
	if err != nil {
		return err
	}
	return task.At(change, "The window has ended. It continues at %s.", w.Window.show(change))
}

// pullAll pulls the image on all agents of the group.
func (r runner) pullAll(ctx context.Context, p *task.Progress, w work) error {
	img, err := r.Client.Image.Query().Where(entimage.ID(w.Image)).WithRegistry().Only(ctx)
	if err != nil {
		return permit.Missing(err, "image", "")
	}
	agents, err := r.agentsOf(ctx, img, w.Group)
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		return problem.Precondition("the resource group has no connected agent for architecture %s", img.Architecture)
	}
	total := int64(len(agents))
	if err := p.Save(ctx, struct{}{}, 0, total); err != nil {
		return err
	}
	var mu sync.Mutex
	var done int64
	var failed []string
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, name := range agents {
		g.Go(func() error {
			err := r.pull(ctx, name, img)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err.Error())
				return ctx.Err()
			}
			done++
			return p.Save(ctx, struct{}{}, done, total) // an error: the task was cancelled, or another manager leads
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(failed) > 0 {
		text := strings.Join(failed[:min(named, len(failed))], "; ")
		return problem.Unavailable("%d of %d agents did not pull the image: %s", len(failed), total, text)
	}
	return nil
}

// pull makes an image present on an agent. Its error names the agent.
func (s *Service) pull(ctx context.Context, name string, img *ent.Image) error {
	if s.Agents.HasImage(name, img.Reference, img.Digest) {
		return nil
	}
	request, err := s.Images.PullRequest(ctx, img)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	if err := s.Agents.Pull(ctx, name, request); err != nil {
		if text := err.Error(); !strings.Contains(text, name) {
			return fmt.Errorf("agent %s: %w", name, err)
		}
		return err
	}
	return nil
}
