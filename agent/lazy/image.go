package lazy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/containerd/errdefs"
)

// image reads the files of an image.
type image struct {
	tree    *tree
	blobs   []*blob
	offsets [][]int64 // of each layer, where its compressed streams begin
	from    *source
	slots   chan struct{} // one element for each read that is served
	recent  recent
}

// open reads the indexes of all layers and merges them.
func open(ctx context.Context, r Request) (*image, error) {
	from, err := newSource(r)
	if err != nil {
		return nil, err
	}
	i := &image{tree: newTree(), from: from, slots: make(chan struct{}, readers)}
	for n := range r.Layers {
		b, err := newBlob(r, n, from)
		if err != nil {
			return nil, err
		}
		entries, offsets, err := readIndex(ctx, b)
		if err == nil {
			err = i.tree.add(n, entries)
		}
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", r.Layers[n].Digest, err)
		}
		i.blobs, i.offsets = append(i.blobs, b), append(i.offsets, offsets)
	}
	return i, i.tree.check()
}

func (i *image) status() Status {
	s := Status{Fetched: i.from.fetched.Load(), Waiting: int(i.from.waiting.Load()), Refused: i.from.refused.Load()}
	for _, b := range i.blobs {
		s.Total += b.layer.Size
		s.Local += b.here()
	}
	if s.Failing, s.Idle = i.from.state(); s.Complete() {
		s.Failing = ""
	}
	return s
}

// readFile reads from a file at an offset. It returns fewer bytes only at its end.
func (i *image) readFile(ctx context.Context, n *node, out []byte, at int64) (int, error) {
	if at >= n.size {
		return 0, nil
	}
	out = out[:min(int64(len(out)), n.size-at)]
	first, _ := slices.BinarySearchFunc(n.chunks, at, func(c chunk, at int64) int {
		if c.at+c.size <= at {
			return -1
		}
		return 1
	})
	done := 0
	for _, c := range n.chunks[first:] {
		if done == len(out) {
			break
		}
		data, err := i.chunk(ctx, c)
		if err != nil {
			return done, err
		}
		done += copy(out[done:], data[at+int64(done)-c.at:])
	}
	return done, nil
}

// chunk returns the verified bytes of a part of a file. Bytes from the registry that are wrong are fetched
// a second time: the wrong ones may come from a proxy or a broken connection.
func (i *image) chunk(ctx context.Context, c chunk) ([]byte, error) {
	key := chunkKey{c.layer, c.offset, c.inner}
	if data := i.recent.get(key); data != nil {
		return data, nil
	}
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if data := i.recent.get(key); data != nil { // of a read that was before this one
		return data, nil
	}
	b := i.blobs[c.layer]
	end, _ := slices.BinarySearch(i.offsets[c.layer], c.offset+1)
	length := i.offsets[c.layer][end] - c.offset
	for try := 0; ; try++ {
		packed, err := b.read(ctx, c.offset, length)
		if err != nil {
			return nil, err
		}
		data, err := c.unpack(b.layer.format(), packed)
		if err == nil {
			i.recent.put(key, data)
			return data, nil
		}
		i.from.refused.Add(1)
		if !b.forget(c.offset, length) || try > 0 {
			err = fmt.Errorf("layer %s has wrong bytes at %d: %w", b.layer.Digest, c.offset, err)
			i.from.note(err)
			return nil, err
		}
	}
}

// unpack decompresses and verifies the part.
func (c chunk) unpack(f format, packed []byte) ([]byte, error) {
	r, err := f.Reader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, errdefs.ErrDataLoss)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, c.inner); err != nil {
		return nil, fmt.Errorf("%v: %w", err, errdefs.ErrDataLoss)
	}
	data := make([]byte, c.size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("%v: %w", err, errdefs.ErrDataLoss)
	}
	if sha256.Sum256(data) != c.digest {
		return nil, fmt.Errorf("the bytes do not have the digest of the index: %w", errdefs.ErrDataLoss)
	}
	return data, nil
}

type chunkKey struct {
	layer         int
	offset, inner int64
}

// recent has the chunks that were read last, in memory: the kernel reads a chunk in several pieces.
type recent struct {
	mu    sync.Mutex
	m     map[chunkKey][]byte
	order []chunkKey
	bytes int64
}

func (r *recent) get(k chunkKey) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[k]
}

func (r *recent) put(k chunkKey, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = map[chunkKey][]byte{}
	}
	if _, ok := r.m[k]; ok {
		return
	}
	r.m[k] = data
	r.order = append(r.order, k)
	for r.bytes += int64(len(data)); r.bytes > chunks && len(r.order) > 1; r.order = r.order[1:] {
		r.bytes -= int64(len(r.m[r.order[0]]))
		delete(r.m, r.order[0])
	}
}
