package containerd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/berthhq/berth/agent/runtime"
)

var _ runtime.Parts = (*Runtime)(nil)

// contentDirectory returns the directory of containerd's content store, and "" if this host does not have it.
func contentDirectory(ctx context.Context, c *client.Client) (string, error) {
	plugins, err := c.IntrospectionService().Plugins(ctx, "type==io.containerd.content.v1")
	if err != nil {
		return "", fmt.Errorf("find containerd's content store: %w", err)
	}
	for _, p := range plugins.Plugins {
		dir := p.Exports["root"]
		if st, err := os.Stat(dir); dir != "" && err == nil && st.IsDir() {
			return dir, nil
		}
	}
	return "", nil
}

// arrivals are the parts of images that are being fetched.
type arrivals struct {
	mu sync.Mutex
	m  map[digest.Digest]*arrival
}

func newArrivals() *arrivals { return &arrivals{m: map[digest.Digest]*arrival{}} }

// arrival is a part that is being fetched. containerd writes it to a file, which other agents can read
// meanwhile.
type arrival struct {
	path string // of the file
	size int64

	mu        sync.Mutex
	available int64
	ended     bool
	err       error
	more      chan struct{} // closed at the next change
}

// begin makes a part available that is being fetched.
func (a *arrivals) begin(d digest.Digest, path string, size, available int64) *arrival {
	one := &arrival{path: path, size: size, available: available, more: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m[d] = one
	return one
}

// end ends the fetch of a part. With an error, the bytes that were read must not be used.
func (a *arrivals) end(d digest.Digest, one *arrival, err error) {
	if one == nil {
		return
	}
	a.mu.Lock()
	if a.m[d] == one {
		delete(a.m, d)
	}
	a.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.ended, one.err = true, err
	close(one.more)
}

func (a *arrivals) get(d digest.Digest) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.m[d]
}

// grown adds bytes that were written.
func (a *arrival) grown(n int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.available += int64(n)
	close(a.more)
	a.more = make(chan struct{})
}

// ingestFile returns the file that containerd writes a download to. The directory of a download has its
// reference in a file, after the namespace and a number.
func (r *Runtime) ingestFile(ref string) string {
	if r.store == "" {
		return ""
	}
	names, _ := filepath.Glob(filepath.Join(r.store, "ingest", "*", "ref"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(text), namespace+"/") && strings.HasSuffix(string(text), "/"+ref) {
			return filepath.Join(filepath.Dir(name), "data")
		}
	}
	return ""
}

// OpenPart implements runtime.Parts.
func (r *Runtime) OpenPart(ctx context.Context, text string) (runtime.Part, error) {
	d, err := digest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("digest %.80q: %v: %w", text, err, errdefs.ErrInvalidArgument)
	}
	if r.store == "" {
		return nil, fmt.Errorf("containerd's content store is not on this host: %w", errdefs.ErrUnavailable)
	}
	if a := r.arriving.get(d); a != nil {
		if f, err := os.Open(a.path); err == nil {
			return &part{File: f, arrival: a}, nil
		} // it is complete by now
	}
	// The file is read without containerd, which would copy it. containerd still decides whether the part
	// exists; an open file can be read after containerd has removed it.
	info, err := r.client.ContentStore().Info(named(ctx), d)
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", d, err)
	}
	f, err := os.Open(filepath.Join(r.store, "blobs", d.Algorithm().String(), d.Encoded()))
	if err != nil {
		return nil, fmt.Errorf("part %s: %w: %w", d, err, errdefs.ErrNotFound)
	}
	return &part{File: f, arrival: &arrival{size: info.Size, available: info.Size, ended: true}}, nil
}

// part implements runtime.Part.
type part struct {
	*os.File
	arrival *arrival
}

func (p *part) Size() int64 { return p.arrival.size }

func (p *part) Await(ctx context.Context, n int64) (int64, bool, error) {
	a := p.arrival
	for {
		a.mu.Lock()
		available, ended, err, more := a.available, a.ended, a.err, a.more
		a.mu.Unlock()
		if ended || available > n {
			return available, ended && err == nil, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return available, false, ctx.Err()
		}
	}
}

var _ io.ReaderAt = (*part)(nil)
