package prepull

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// keepEvery is the interval at which the agents are compared with the images that they should keep.
	keepEvery = 15 * time.Second
	// againAfter is the wait after a pull has failed.
	againAfter = 5 * time.Minute
)

// keeper pulls the images that resource groups keep.
type keeper struct {
	*Service
	mu      sync.Mutex
	running map[string]bool      // agent and reference
	failed  map[string]time.Time // agent and reference
	pulls   sync.WaitGroup
}

// Lead pulls the images that resource groups keep on their agents, also on agents that join later, until ctx ends.
func (s *Service) Lead(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	k := &keeper{Service: s, running: map[string]bool{}, failed: map[string]time.Time{}}
	defer k.pulls.Wait()
	tick := clock.NewTicker("images that groups keep", keepEvery)
	defer tick.Stop()
	for {
		if err := k.compare(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("images that resource groups keep", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// compare starts missing pulls and sets the pins of all agents.
func (k *keeper) compare(ctx context.Context) error {
	images, err := k.Client.Image.Query().Where(entimage.HasAutoPull(), entimage.StatusEQ(entimage.StatusAlive), entimage.HasRegistry()).
		WithRegistry().WithAutoPull().All(ctx)
	if err != nil {
		return fmt.Errorf("read images: %w", err)
	}
	agents, err := k.Client.Agent.Query().Where(agent.StatusEQ(agent.StatusAlive)).
		Select(agent.FieldName, agent.FieldArchitecture, agent.FieldResourceGroupID).All(ctx)
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	for _, a := range agents {
		if _, err := k.Agents.RPC(a.Name); err != nil {
			continue // another manager's, or not connected
		}
		var pins []string
		for _, img := range kept(images, a) {
			pins = append(pins, img.Reference)
			k.start(ctx, a.Name, img)
		}
		slices.Sort(pins)
		k.Pins.Pin(a.Name, pins)
	}
	return nil
}

// kept returns the images that an agent should keep.
func kept(images []*ent.Image, a *ent.Agent) (list []*ent.Image) {
	for _, img := range images {
		of := func(g *ent.ResourceGroup) bool { return g.ID == a.ResourceGroupID && g.ID != uuid.Nil }
		if (img.Architecture == "" || img.Architecture == a.Architecture) && slices.ContainsFunc(img.Edges.AutoPull, of) {
			list = append(list, img)
		}
	}
	return list
}

// start pulls an image on an agent that lacks it, unless that runs already or has failed a short time ago.
func (k *keeper) start(ctx context.Context, name string, img *ent.Image) {
	if k.Agents.HasImage(name, img.Reference, img.Digest) {
		return
	}
	key := name + " " + img.Reference + "@" + img.Digest
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running[key] || clock.Now().Sub(k.failed[key]) < againAfter {
		return
	}
	k.running[key] = true
	k.pulls.Go(func() {
		err := k.pull(ctx, name, img)
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.running, key)
		delete(k.failed, key)
		if err != nil && ctx.Err() == nil {
			k.failed[key] = clock.Now()
			k.Logger.Warn("image that a resource group keeps not pulled", "image", img.Reference, "agent", name, "again", againAfter, "error", err)
		}
	})
}
