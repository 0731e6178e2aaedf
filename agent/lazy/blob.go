package lazy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// blob reads a layer: from the content store once it is there, otherwise from a cache of the blocks that
// the registry has sent. The cache is a file with holes, at most as large as the layer.
type blob struct {
	layer Layer
	path  string // in the content store
	cache string // path of the cache
	from  *source

	mu       sync.Mutex
	stored   *os.File // the layer in the content store, nil until it is there
	cached   *os.File
	present  []uint64                // a bit for each block in the cache
	count    int64                   // of them
	fetching map[int64]chan struct{} // blocks that are being fetched; closed at the end
}

func newBlob(r Request, n int, from *source) (*blob, error) {
	l := r.Layers[n]
	if _, err := parseDigest(l.Digest); err != nil {
		return nil, err
	}
	blocks := (l.Size + block - 1) / block
	return &blob{
		layer: l, path: filepath.Join(r.Store, "blobs", "sha256", strings.TrimPrefix(l.Digest, "sha256:")),
		cache: filepath.Join(r.Dir, fmt.Sprintf("layer-%d", n)), from: from,
		present: make([]uint64, (blocks+63)/64), fetching: map[int64]chan struct{}{},
	}, nil
}

// local returns the layer in the content store, or nil. The cache is removed when it is there.
func (b *blob) local() *os.File {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stored != nil {
		return b.stored
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil
	}
	if st, err := f.Stat(); err != nil || st.Size() != b.layer.Size {
		f.Close()
		return nil
	}
	b.stored = f
	_ = os.Remove(b.cache) // readers may still use the open file
	return f
}

// here returns the number of bytes on this machine.
func (b *blob) here() int64 {
	if b.local() != nil {
		return b.layer.Size
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(b.count*block, b.layer.Size-1) // complete only in the content store
}

// read returns n bytes from an offset. They are not verified yet.
func (b *blob) read(ctx context.Context, at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at+n > b.layer.Size {
		return nil, fmt.Errorf("bytes %d to %d of a layer of %d: %w", at, at+n, b.layer.Size, errdefs.ErrOutOfRange)
	}
	f := b.local()
	if f == nil {
		var err error
		if f, err = b.fill(ctx, at, n); err != nil {
			return nil, err
		}
	}
	out := make([]byte, n)
	if _, err := f.ReadAt(out, at); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, fmt.Errorf("read layer %s: %w", b.layer.Digest, err)
	}
	return out, nil
}

// fill makes bytes present in the cache, and returns its file.
func (b *blob) fill(ctx context.Context, at, n int64) (*os.File, error) {
	first, last := at/block, (at+max(n, 1)-1)/block
	for {
		from, to, waitFor, err := b.missing(first, last)
		switch {
		case err != nil:
			return nil, err
		case waitFor != nil:
			select {
			case <-waitFor:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case from > to:
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.cached, nil
		}
		if err := b.fetch(ctx, from, to); err != nil {
			if f := b.local(); f != nil { // it has arrived meanwhile
				return f, nil
			}
			return nil, err
		}
	}
}

// missing returns the next blocks that are missing and marks them, or a channel to wait for if another
// read fetches them.
func (b *blob) missing(first, last int64) (from, to int64, waitFor chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cached == nil {
		if b.cached, err = os.OpenFile(b.cache, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return 0, 0, nil, fmt.Errorf("cache of a layer: %w", err)
		}
	}
	for from = first; from <= last && b.has(from); from++ {
	}
	if from > last {
		return from, last, nil, nil
	}
	if running := b.fetching[from]; running != nil {
		return 0, 0, running, nil
	}
	ended := make(chan struct{})
	for to = from; to <= last && !b.has(to) && b.fetching[to] == nil && (to-from+1)*block <= maxRange; to++ {
		b.fetching[to] = ended
	}
	return from, to - 1, nil, nil
}

func (b *blob) has(n int64) bool { return b.present[n/64]&(1<<(n%64)) != 0 }

// fetch fetches marked blocks from the registry.
func (b *blob) fetch(ctx context.Context, from, to int64) error {
	at := from * block
	n := min((to+1)*block, b.layer.Size) - at
	data, err := b.from.read(ctx, b, at, n)
	if err == nil {
		_, err = b.cached.WriteAt(data, at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.fetching[from]
	for i := from; i <= to; i++ {
		delete(b.fetching, i)
		if err == nil {
			b.present[i/64] |= 1 << (i % 64)
			b.count++
		}
	}
	close(ended)
	return err
}

// forget drops cached bytes that turned out to be wrong. It reports whether there were any.
func (b *blob) forget(at, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stored != nil {
		return false
	}
	for i := at / block; i <= (at+max(n, 1)-1)/block; i++ {
		if b.has(i) {
			b.present[i/64] &^= 1 << (i % 64)
			b.count--
		}
	}
	return true
}

// final reports whether an error of the cache's disk or the request would come again at once.
func final(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errdefs.IsInvalidArgument(err) || errdefs.IsUnauthorized(err) ||
		errdefs.IsPermissionDenied(err) || errdefs.IsNotFound(err)
}

// pause waits between two tries.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
