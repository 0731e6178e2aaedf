package fake

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/push"
)

// Commit sends an image with the files that commands have written outside of folders. The image can
// be pulled on this host.
func (c *container) Commit(ctx context.Context, s runtime.CommitSpec, progress func(runtime.Progress)) (runtime.Committed, error) {
	c.mu.Lock()
	err, files, before := c.gone(), maps.Clone(c.files), c.before
	c.mu.Unlock()
	if err != nil {
		return runtime.Committed{}, err
	}
	if d, err := time.ParseDuration(c.env[CommitDelay]); err == nil {
		progress(runtime.Progress{Phase: "copying", Total: 1})
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return runtime.Committed{}, ctx.Err()
		}
	}
	if msg, ok := c.env[FailCommit]; ok {
		return runtime.Committed{}, fmt.Errorf("%s: %w", msg, errdefs.ErrFailedPrecondition)
	}
	img, added, err := image(files, before)
	if err != nil {
		return runtime.Committed{}, err
	}
	if s.MaxBytes > 0 && added > s.MaxBytes {
		return runtime.Committed{}, fmt.Errorf("the new layer has %d bytes, more than the limit of %d: %w", added, s.MaxBytes, errdefs.ErrFailedPrecondition)
	}
	sent, err := push.Push(ctx, push.Target{
		Repository: s.Repository, PlainHTTP: s.PlainHTTP, Username: s.Username, Password: s.Password,
	}, img, func(done, total int64) { progress(runtime.Progress{Phase: "pushing", Done: done, Total: total}) })
	if err != nil {
		return runtime.Committed{}, err
	}
	c.host.offer(s.Repository, sent.Digest, files)
	return runtime.Committed{Digest: sent.Digest, Size: sent.Size, LayerBytes: added, Sent: sent.Sent}, nil
}

// image has one layer with the files, and returns its size; without changes there is none.
func image(files, before map[string]string) (push.Image, int64, error) {
	img := push.Image{Config: ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: goruntime.GOARCH}}}
	img.Config.RootFS.Type = "layers"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return img, 0, err
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			return img, 0, err
		}
	}
	if err := w.Close(); err != nil {
		return img, 0, err
	}
	sum := digest.FromBytes(b.Bytes())
	img.Config.RootFS.DiffIDs = []digest.Digest{sum}
	img.Layers = []push.Layer{{
		Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: sum, Size: int64(b.Len())},
		Open:       func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
	}}
	if maps.Equal(files, before) {
		return img, 0, nil
	}
	return img, int64(b.Len()), nil
}

// offer makes a committed image available to Pull.
func (h *Host) offer(repository, sum string, files map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reference := repository + "@" + sum
	h.registry[reference] = runtime.Image{Reference: reference, Digest: sum}
	h.contents[sum] = files
}

// offered returns the image of a reference or, if it was committed, of its repository and digest.
func (h *Host) offered(req runtime.PullRequest) (runtime.Image, bool) {
	if img, ok := h.registry[req.Reference]; ok {
		return img, true
	}
	repository, _, _ := strings.Cut(req.Reference, "@")
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository = repository[:i]
	}
	img, ok := h.registry[repository+"@"+req.Digest]
	img.Reference = req.Reference
	return img, ok
}

// file simulates programs that write and read files outside of folders.
func (c *container) file(verb []string, out io.Writer) bool {
	switch {
	case verb[0] == "write" && len(verb) == 3:
		c.files[verb[1]] = verb[2]
		return true
	case verb[0] == "cat" && len(verb) == 2:
		text, ok := c.files[verb[1]]
		if ok && out != nil {
			_, _ = io.WriteString(out, text)
		}
		return ok
	}
	return false
}
