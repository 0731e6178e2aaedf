package containerd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/commit"
	"github.com/berthhq/berth/agent/runtime/push"
)

// labelImage is a label of a container with the digest of its image. It makes containerd keep the
// content of the image: the image's name can mean another one by the time of a commit.
const labelImage = "containerd.io/gc.ref.content.berth"

// maxLayers limits the layers of an image: overlayfs mounts of more fail on some kernels.
const maxLayers = 120

// Commit implements runtime.Container.
func (c *container) Commit(ctx context.Context, s runtime.CommitSpec, progress func(runtime.Progress)) (runtime.Committed, error) {
	ctx = named(ctx)
	out, err := c.commit(ctx, s, progress)
	if err != nil {
		return out, fmt.Errorf("commit container %s: %w", c.ID(), err)
	}
	return out, nil
}

func (c *container) commit(ctx context.Context, s runtime.CommitSpec, progress func(runtime.Progress)) (out runtime.Committed, err error) {
	if err := c.runtime.awaitLazy(ctx, c.labels[labelLazy]); err != nil { // the new image needs all layers
		return out, err
	}
	base, err := c.base(ctx)
	if err != nil {
		return out, err
	}
	if n := len(base.manifest.Layers); n >= maxLayers {
		return out, fmt.Errorf("the image has %d layers, and the limit is %d: %w", n, maxLayers, errdefs.ErrFailedPrecondition)
	}
	src, err := c.source(ctx, s)
	if err != nil {
		return out, err
	}
	dir, err := os.MkdirTemp(filepath.Join(c.runtime.cfg.Dir, commits), "commit-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	layer, err := commit.Make(ctx, src, dir, func(phase string, done, total int64) {
		progress(runtime.Progress{Phase: phase, Done: done, Total: total})
	})
	if err != nil {
		return out, err
	}
	if s.MaxBytes > 0 && layer.Size > s.MaxBytes {
		return out, fmt.Errorf("the new layer has %d bytes, more than the limit of %d: %w", layer.Size, s.MaxBytes, errdefs.ErrFailedPrecondition)
	}
	target := push.Target{Repository: s.Repository, PlainHTTP: s.PlainHTTP, Username: s.Username, Password: s.Password, MountFrom: s.MountFrom}
	sent, err := push.Push(ctx, target, base.with(layer), func(done, total int64) {
		progress(runtime.Progress{Phase: "pushing", Done: done, Total: total})
	})
	return runtime.Committed{Digest: sent.Digest, Size: sent.Size, LayerBytes: layer.Size, Sent: sent.Sent, Paused: layer.Paused}, err
}

// commits is the directory of unfinished commits below the runtime's.
const commits = "commits"

// source finds the directories of a container's file system.
func (c *container) source(ctx context.Context, s runtime.CommitSpec) (src commit.Source, err error) {
	mounts, err := c.runtime.client.SnapshotService(snapshotter).Mounts(ctx, c.id)
	if err != nil {
		return src, fmt.Errorf("find the snapshot: %w", err)
	}
	if digest := c.labels[labelLazy]; digest != "" {
		if mounts, err = over(lazy.Root(c.runtime.lazyDir(digest)), mounts); err != nil {
			return src, err
		}
	}
	if len(mounts) != 1 || mounts[0].Type != "overlay" {
		return src, fmt.Errorf("the snapshot is not an overlay but %v: %w", mounts, errdefs.ErrFailedPrecondition)
	}
	for _, option := range mounts[0].Options {
		if dirs, ok := strings.CutPrefix(option, "lowerdir="); ok {
			src.Lower = strings.Split(dirs, ":")
		}
		if dir, ok := strings.CutPrefix(option, "upperdir="); ok {
			src.Upper = dir
		}
	}
	if s.Layer != "" {
		src.Upper = filepath.Join(s.Layer, "upper")
	}
	if src.Mounts, err = c.destinations(ctx); err != nil {
		return src, err
	}
	src.Pause, src.MaxBytes, src.Indexed = c.whilePaused, 0, s.Indexed
	return src, nil
}

// destinations returns the places of the container's mounts.
func (c *container) destinations(ctx context.Context) (list []string, err error) {
	rec, err := c.runtime.client.ContainerService().Get(ctx, c.id)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	var spec specs.Spec
	if err := typeurl.UnmarshalTo(rec.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	for _, m := range spec.Mounts {
		list = append(list, m.Destination)
	}
	return list, nil
}

// whilePaused pauses the container's processes during f. A container that has ended has none.
func (c *container) whilePaused(ctx context.Context, f func() error) (err error) {
	t, err := c.task(ctx)
	if errdefs.IsNotFound(err) {
		return f()
	}
	if err != nil {
		return err
	}
	status, err := t.Status(ctx)
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	if status.Status == client.Stopped {
		return f()
	}
	step, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	if err := t.Pause(step); err != nil {
		return errors.Join(fmt.Errorf("pause: %w", err), c.wake(ctx, t))
	}
	return errors.Join(f(), c.wake(ctx, t))
}

// wakeAll resumes containers that an agent paused before it was killed, and removes what is left of
// its commits.
func (r *Runtime) wakeAll(ctx context.Context) error {
	dir := filepath.Join(r.cfg.Dir, commits)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return fmt.Errorf("remove unfinished commits: %w", err)
	}
	list, err := r.Containers(ctx)
	if err != nil {
		return err
	}
	for _, one := range list {
		c := one.(*container)
		t, err := c.task(named(ctx))
		if err == nil {
			err = c.wake(ctx, t)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			r.cfg.Logger.Warn("container not resumed", "container", c.ID(), "error", err)
		}
	}
	return nil
}

// base is the image that a container was created from.
type base struct {
	digest   string // of its manifest or index
	manifest ocispec.Manifest
	config   ocispec.Image
	original push.Original
	store    content.Store
}

func (c *container) base(ctx context.Context) (b base, err error) {
	b = base{digest: c.labels[labelImage], store: c.runtime.client.ContentStore()}
	if b.digest == "" {
		return b, fmt.Errorf("the container was created by an older version of the agent: restart the session: %w", errdefs.ErrFailedPrecondition)
	}
	if err := b.readManifest(ctx, ocispec.Descriptor{Digest: digest.Digest(b.digest)}); err != nil {
		return b, fmt.Errorf("read the manifest of image %s: %w", b.digest, err)
	}
	b.original.ConfigType = b.manifest.Config.MediaType
	if b.original.Config, err = content.ReadBlob(ctx, b.store, b.manifest.Config); err != nil {
		return b, fmt.Errorf("read the configuration of image %s: %w", b.digest, err)
	}
	if err := json.Unmarshal(b.original.Config, &b.config); err != nil {
		return b, fmt.Errorf("configuration of image %s: %w: %w", b.digest, err, errdefs.ErrInvalidArgument)
	}
	return b, nil
}

// readManifest reads the manifest for this platform.
func (b *base) readManifest(ctx context.Context, d ocispec.Descriptor) error {
	text, err := content.ReadBlob(ctx, b.store, d)
	if err != nil {
		return err
	}
	var is struct {
		MediaType string               `json:"mediaType"`
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("%w: %w", err, errdefs.ErrInvalidArgument)
	}
	here := platforms.Default()
	for _, m := range is.Manifests {
		if m.Platform != nil && here.Match(*m.Platform) {
			return b.readManifest(ctx, m)
		}
	}
	if len(is.Manifests) > 0 {
		return fmt.Errorf("it has none for this platform: %w", errdefs.ErrNotFound)
	}
	b.original.Manifest, b.original.ManifestType = text, cmp.Or(is.MediaType, ocispec.MediaTypeImageManifest)
	if err := json.Unmarshal(text, &b.manifest); err != nil {
		return fmt.Errorf("%w: %w", err, errdefs.ErrInvalidArgument)
	}
	return nil
}

// with returns the image with one more layer. The environment and the command stay those of the image:
// the container's own have variables of its session. Nothing in it depends on the time of the commit,
// so the same files result in the same image.
func (b base) with(layer commit.Layer) push.Image {
	img := push.Image{Config: b.config, Annotations: map[string]string{ocispec.AnnotationBaseImageDigest: b.digest}}
	for _, l := range b.manifest.Layers {
		img.Layers = append(img.Layers, push.Layer{Descriptor: l, Open: b.open(l)})
	}
	if layer.Digest == "" {
		img.Original = &b.original
		return img
	}
	img.Layers = append(img.Layers, push.Layer{
		Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerZstd, Digest: layer.Digest, Size: layer.Size, Annotations: layer.Annotations},
		Open:       func(context.Context) (io.ReadCloser, error) { return os.Open(layer.Path) },
	})
	at := layer.Newest.UTC()
	if b.config.Created != nil && b.config.Created.After(at) {
		at = *b.config.Created
	}
	at = at.Truncate(time.Second)
	img.Config.Created = &at
	img.Config.RootFS.DiffIDs = append(append([]digest.Digest{}, b.config.RootFS.DiffIDs...), layer.DiffID)
	img.Config.History = append(append([]ocispec.History{}, b.config.History...), ocispec.History{Created: &at, CreatedBy: "berth session commit"})
	return img
}

func (b base) open(l ocispec.Descriptor) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		r, err := b.store.ReaderAt(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("layer %s of the session's image is no longer on this machine: %w", l.Digest, err)
		}
		return struct {
			io.Reader
			io.Closer
		}{content.NewReader(r), r}, nil
	}
}
