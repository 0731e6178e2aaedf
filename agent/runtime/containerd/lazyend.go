package containerd

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/lazy"
)

// lazyEnded handles the end of a process. Containers cannot use their files any longer, so they are killed.
func (r *Runtime) lazyEnded(l *lazyImage) {
	r.lazies.mu.Lock()
	last := l.status
	r.lazies.mu.Unlock()
	last.Waiting = 0
	r.measureLazy(l, last)
	r.lazies.mu.Lock()
	expected := l.ended
	if r.lazies.m[l.digest] == l {
		delete(r.lazies.m, l.digest)
	}
	complete := l.complete
	r.lazies.mu.Unlock()
	if expected {
		return
	}
	r.cfg.Logger.Error("the process with the files of an image has ended", "image", l.reference, "digest", l.digest)
	l.cancel()
	<-l.done
	ctx := context.WithoutCancel(r.lazies.ctx)
	if !complete {
		r.forgetIncomplete(ctx, l.reference, l.digest)
	}
	r.loseContainers(ctx, l.digest)
	if err := lazy.Remove(r.lazyDir(l.digest)); err != nil {
		r.cfg.Logger.Warn("mount of an image not removed", "error", err)
	}
	r.lazyChanged()
}

// forgetIncomplete removes the record of an image whose layers are not present.
func (r *Runtime) forgetIncomplete(ctx context.Context, reference, digest string) {
	img, err := r.client.GetImage(ctx, reference)
	if err != nil || img.Target().Digest.String() != digest {
		return
	}
	if whole, err := img.IsUnpacked(ctx, snapshotter); err != nil || whole {
		return
	}
	if err := r.client.ImageService().Delete(ctx, reference); err != nil && !errdefs.IsNotFound(err) {
		r.cfg.Logger.Warn("incomplete image not removed", "image", reference, "error", err)
	}
	r.mu.Lock()
	delete(r.images, digest)
	r.mu.Unlock()
}

// loseContainers kills the containers whose files are gone.
func (r *Runtime) loseContainers(ctx context.Context, digest string) {
	list, err := r.lazyContainers(ctx, digest)
	if err != nil {
		r.cfg.Logger.Error("containers of an image whose files are gone", "error", err)
	}
	for _, id := range list {
		if err := (&container{runtime: r, id: id}).Kill(ctx, 9); err != nil && !errdefs.IsNotFound(err) {
			r.cfg.Logger.Warn("container without files not killed", "container", id, "error", err)
		}
	}
}

func (r *Runtime) lazyContainers(ctx context.Context, digest string) (ids []string, err error) {
	list, err := r.client.ContainerService().List(ctx, fmt.Sprintf("labels.%q==%q", labelLazy, digest))
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// Lazy implements runtime.RootChecker.
func (c *container) Lazy() bool { return c.labels[labelLazy] != "" }

// RootProblem implements runtime.RootChecker.
func (c *container) RootProblem(ctx context.Context) (problem string, lost bool) {
	digest := c.labels[labelLazy]
	if digest == "" {
		return "", false
	}
	z := c.runtime.lazies
	z.mu.Lock()
	l := z.m[digest]
	z.mu.Unlock()
	if l == nil {
		return filesGone, true
	}
	s, err := l.mount.Status(ctx)
	if err != nil {
		return filesGone, ctx.Err() == nil
	}
	return s.Failing, false
}

const filesGone = "the process that read the files of its image has ended, so its files are gone"
