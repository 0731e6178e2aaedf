package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/agent/runtime"
)

// acquireLazy returns the image for a container that is being created, or nil if its layers are unpacked.
func (r *Runtime) acquireLazy(digest string) *lazyImage {
	r.lazies.mu.Lock()
	defer r.lazies.mu.Unlock()
	l := r.lazies.m[digest]
	if l == nil || l.complete || l.ended {
		return nil
	}
	l.creating++
	return l
}

// createdLazy ends acquireLazy, once the container has a record.
func (r *Runtime) createdLazy(ctx context.Context, l *lazyImage) {
	if l == nil {
		return
	}
	r.lazies.mu.Lock()
	l.creating--
	r.lazies.mu.Unlock()
	r.releaseLazy(context.WithoutCancel(ctx), l.digest)
}

// releaseLazy ends the process of an image that is complete and that no container uses.
func (r *Runtime) releaseLazy(ctx context.Context, digest string) { r.dropLazy(ctx, digest, false) }

// dropLazy ends the process of an image that no container uses, and reports whether none is left.
func (r *Runtime) dropLazy(ctx context.Context, digest string, incomplete bool) bool {
	users, err := r.lazyContainers(ctx, digest)
	r.lazies.mu.Lock()
	l := r.lazies.m[digest]
	if l == nil {
		r.lazies.mu.Unlock()
		return true
	}
	if err != nil || len(users) > 0 || l.creating > 0 || !l.complete && !incomplete {
		r.lazies.mu.Unlock()
		return false
	}
	l.ended = true
	delete(r.lazies.m, digest)
	r.lazies.mu.Unlock()
	l.cancel()
	if incomplete {
		<-l.done // it must not record the image again
	}
	if err := lazy.Remove(r.lazyDir(digest)); err != nil {
		r.cfg.Logger.Warn("mount of an image not removed", "error", err)
	}
	return true
}

// lazyOf returns the state of an image whose layers are not unpacked yet, and false for others.
func (r *Runtime) lazyOf(digest string) (lazy.Status, bool) {
	r.lazies.mu.Lock()
	defer r.lazies.mu.Unlock()
	l := r.lazies.m[digest]
	if l == nil || l.complete {
		return lazy.Status{}, false
	}
	return l.status, true
}

// awaitLazy waits until the layers of an image are present.
func (r *Runtime) awaitLazy(ctx context.Context, digest string) error {
	r.lazies.mu.Lock()
	l := r.lazies.m[digest]
	r.lazies.mu.Unlock()
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("image %s is not complete yet: %w", l.reference, ctx.Err())
	}
}

// adoptLazies takes over the processes of an agent that was stopped or killed.
func (r *Runtime) adoptLazies(ctx context.Context) error {
	ctx = named(ctx)
	list, err := os.ReadDir(filepath.Join(r.cfg.Dir, "lazy"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range list {
		digest := "sha256:" + e.Name()
		if err := r.adoptLazy(ctx, digest); err != nil {
			r.cfg.Logger.Warn("no process with the files of an image", "digest", digest, "error", err)
			r.loseContainers(ctx, digest)
			if err := lazy.Remove(r.lazyDir(digest)); err != nil {
				return err
			}
		}
	}
	return r.forgetAllIncomplete(ctx)
}

func (r *Runtime) adoptLazy(ctx context.Context, digest string) error {
	m, err := lazy.Attach(ctx, r.lazyDir(digest))
	if err != nil {
		return err
	}
	q, err := m.Request(ctx)
	if err != nil {
		return err
	}
	l := &lazyImage{digest: digest, reference: q.Reference, mount: m}
	if img, err := r.client.GetImage(ctx, q.Reference); err == nil && img.Target().Digest.String() == digest {
		l.complete, _ = img.IsUnpacked(ctx, snapshotter)
	}
	r.serveLazy(l, runtime.PullRequest{
		Reference: q.Reference, Digest: digest, PlainHTTP: q.PlainHTTP, Username: q.Username, Password: q.Password,
		Proxy: q.Proxy, Certificates: q.Certificates,
	})
	r.releaseLazy(ctx, digest)
	return nil
}

// forgetAllIncomplete removes records of images whose process was killed together with its agent.
func (r *Runtime) forgetAllIncomplete(ctx context.Context) error {
	list, err := r.client.ImageService().List(ctx, fmt.Sprintf("labels.%q==%q", labelLazy, r.cfg.Agent))
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	for _, img := range list {
		if _, ok := r.lazyOf(img.Target.Digest.String()); !ok {
			r.forgetIncomplete(ctx, img.Name, img.Target.Digest.String())
		}
	}
	return nil
}

// closeLazies stops completing images. Images that containers use keep their processes; those of others
// end, with the records of images that are not complete.
func (r *Runtime) closeLazies() {
	r.lazies.mu.Lock()
	var all []*lazyImage
	for _, l := range r.lazies.m {
		all = append(all, l)
	}
	r.lazies.mu.Unlock()
	r.lazies.stop()
	r.lazies.wg.Wait()
	ctx, cancel := context.WithTimeout(named(context.Background()), 5*time.Second)
	defer cancel()
	for _, l := range all {
		if r.dropLazy(ctx, l.digest, true) && !l.complete {
			r.forgetIncomplete(ctx, l.reference, l.digest)
		}
	}
}
