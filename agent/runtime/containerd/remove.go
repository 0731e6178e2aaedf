package containerd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
)

// labelUsed is the label of an image with the time of its last use.
const labelUsed = "berth.used"

// use notes that a container is created from an image. The time is stored with the next storeUses: a write to
// containerd's database would slow down each start.
func (r *Runtime) use(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[name] = time.Now()
}

// lastUse returns when a container was last created from an image, or when the image was pulled.
func (r *Runtime) lastUse(img client.Image) time.Time {
	r.mu.Lock()
	at, ok := r.used[img.Name()]
	r.mu.Unlock()
	if ok {
		return at
	}
	meta := img.Metadata()
	if at, err := time.Parse(time.RFC3339Nano, meta.Labels[labelUsed]); err == nil && at.After(meta.CreatedAt) {
		return at
	}
	return meta.CreatedAt
}

// storeUses stores the times of the last use that are not stored yet.
func (r *Runtime) storeUses(ctx context.Context) error {
	r.mu.Lock()
	used := r.used
	r.used = map[string]time.Time{}
	r.mu.Unlock()
	var failed error
	for name, at := range used {
		_, err := r.client.ImageService().Update(ctx, images.Image{
			Name: name, Labels: map[string]string{labelUsed: at.UTC().Format(time.RFC3339Nano)},
		}, "labels."+labelUsed)
		if err != nil && !errdefs.IsNotFound(err) {
			failed = errors.Join(failed, fmt.Errorf("image %s: %w", name, err))
		}
	}
	return failed
}

// RemoveImage implements runtime.ImageRemover. Parts that other images share stay.
func (r *Runtime) RemoveImage(ctx context.Context, img runtime.Image) error {
	ctx = named(ctx)
	if err := r.storeUses(ctx); err != nil {
		return err
	}
	list, err := r.client.ContainerService().List(ctx, fmt.Sprintf("image==%q", img.Reference))
	if err != nil {
		return fmt.Errorf("containers of image %s: %w", img.Reference, err)
	}
	if len(list) > 0 {
		return fmt.Errorf("image %s: %d containers use it: %w", img.Reference, len(list), errdefs.ErrFailedPrecondition)
	}
	now, err := r.client.GetImage(ctx, img.Reference)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", img.Reference, err)
	}
	if r.lastUse(now).After(img.Used) || now.Target().Digest.String() != img.Digest {
		return fmt.Errorf("image %s was just used or pulled: %w", img.Reference, errdefs.ErrFailedPrecondition)
	}
	if !r.dropLazy(ctx, img.Digest, true) {
		return fmt.Errorf("image %s: containers use its files: %w", img.Reference, errdefs.ErrFailedPrecondition)
	}
	// Synchronous: containerd has removed the files that nothing else needs when the call returns.
	if err := r.client.ImageService().Delete(ctx, img.Reference, images.SynchronousDelete()); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove image %s: %w", img.Reference, err)
	}
	r.mu.Lock()
	delete(r.images, img.Digest)
	r.mu.Unlock()
	return nil
}
