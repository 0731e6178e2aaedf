package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
)

// ImageCleanup configures when images are removed to free space.
type ImageCleanup struct {
	// Above is the percentage of the disk in use from which on images are removed, and Below the one at
	// which that ends. 0 as Above disables it.
	Above, Below int
	Grace        time.Duration // since the last use of an image, in which it stays
}

// The defaults of ImageCleanup. They free space before the condition disk_pressure keeps sessions away.
const (
	DefaultCleanupAbove = 85
	DefaultCleanupBelow = 75
	DefaultCleanupGrace = time.Hour
)

func (c ImageCleanup) check() error {
	if c.Above < 0 || c.Above > 100 || c.Below < 0 || c.Above > 0 && c.Below >= c.Above {
		return fmt.Errorf("images are removed above %d %% of the disk down to %d %%: want 0 to 100, and the second below the first: %w",
			c.Above, c.Below, errdefs.ErrInvalidArgument)
	}
	if c.Grace < 0 {
		return fmt.Errorf("grace time of images is %s, below 0: %w", c.Grace, errdefs.ErrInvalidArgument)
	}
	return nil
}

const cleanupEvery = 30 * time.Second

// cleaner removes images that were not used for the longest time while the disk is full.
type cleaner struct {
	cfg     ImageCleanup
	runtime runtime.Runtime
	remover runtime.ImageRemover // nil: the runtime has no images on disk
	changed func()               // the list of images has changed
	meter   *meter
	log     *slog.Logger

	mu   sync.Mutex
	pins map[string]bool // nil until a manager has sent the list
}

func newCleaner(a *Agent) *cleaner {
	c := &cleaner{cfg: a.cfg.Images.Cleanup, runtime: a.runtime, changed: a.hub.reportChanged, meter: a.meter, log: a.log}
	c.remover, _ = a.runtime.(runtime.ImageRemover)
	return c
}

// pin replaces the list of images that stay.
func (c *cleaner) pin(references []string) {
	pins := make(map[string]bool, len(references))
	for _, r := range references {
		pins[r] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = pins
}

func (c *cleaner) pinned() (pins map[string]bool, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pins, c.pins != nil
}

// run cleans up at intervals until ctx ends.
func (c *cleaner) run(ctx context.Context) {
	if c.remover == nil || c.cfg.Above == 0 {
		return
	}
	tick := time.NewTicker(cleanupEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.clean(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("images not removed", "error", err)
		}
	}
}

// clean removes images if the disk is fuller than it should be, until it no longer is.
func (c *cleaner) clean(ctx context.Context) error {
	pins, known := c.pinned()
	if !known {
		return nil
	}
	size, free, err := c.remover.ImageDisk()
	if err != nil || used(size, free) < c.cfg.Above {
		return err
	}
	images, err := c.runtime.Images(ctx)
	if err != nil {
		return err
	}
	for _, img := range removable(images, pins, time.Now().Add(-c.cfg.Grace)) {
		err := c.remover.RemoveImage(ctx, img)
		if errdefs.IsFailedPrecondition(err) {
			continue // in use
		}
		if err != nil {
			return err
		}
		before := free
		if size, free, err = c.remover.ImageDisk(); err != nil {
			return err
		}
		c.meter.removed.Inc()
		c.meter.removedBytes.Add(float64(max(0, free-before)))
		c.log.Info("image removed to free space", "image", img.Reference, "digest", img.Digest,
			"lastUsed", img.Used.UTC().Format(time.RFC3339), "freed", free-before, "diskUsedPercent", used(size, free))
		c.changed()
		if used(size, free) <= c.cfg.Below {
			return nil
		}
	}
	return nil
}

// used returns the percentage of a disk in use, rounded up.
func used(size, free int64) int {
	if size <= 0 {
		return 0
	}
	return int((100*(size-free) + size - 1) / size)
}

// removable returns the images that can be removed, the least recently used first: those that were last used
// before a time and are not pinned. Whether a container uses an image is checked at its removal.
func removable(images []runtime.Image, pins map[string]bool, before time.Time) []runtime.Image {
	list := slices.DeleteFunc(slices.Clone(images), func(i runtime.Image) bool {
		return pins[i.Reference] || i.Used.IsZero() || i.Used.After(before)
	})
	slices.SortFunc(list, func(a, b runtime.Image) int {
		return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.Reference, b.Reference))
	})
	return list
}
