package lazy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/containerd/stargz-snapshotter/estargz/zstdchunked"
	"github.com/opencontainers/go-digest"
)

// format is a format of layers.
type format interface {
	estargz.Decompressor
	DecompressTOC(io.Reader) (io.ReadCloser, error)
}

func (l Layer) format() format {
	if l.Zstd {
		return &zstdchunked.Decompressor{}
	}
	return &estargz.GzipDecompressor{}
}

func parseDigest(text string) (sum [32]byte, err error) {
	d, err := digest.Parse(text)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return sum, invalid("digest %.80q is not sha256", text)
	}
	_, err = hex.Decode(sum[:], []byte(d.Encoded()))
	return sum, err
}

// errNoIndex means that a layer does not have the index that its manifest names.
var errNoIndex = fmt.Errorf("the layer has no index: %w", errdefs.ErrInvalidArgument)

// readIndex reads the index of a layer, and verifies its digest. It also returns where the streams of the
// layer begin, in order; the last element is the end.
func readIndex(ctx context.Context, b *blob) (entries []*estargz.TOCEntry, offsets []int64, err error) {
	f := b.layer.format()
	footer := f.FooterSize()
	if b.layer.Size < footer || b.layer.Size > maxBlob {
		return nil, nil, errNoIndex
	}
	end, err := b.read(ctx, b.layer.Size-footer, footer)
	if err != nil {
		return nil, nil, err
	}
	payload, at, size, err := parseFooter(f, end)
	if err != nil {
		return nil, nil, err
	}
	if size <= 0 {
		size = b.layer.Size - footer - at
	}
	if payload < 0 || payload > at || at+size > b.layer.Size || at < 0 || size <= 0 || size > maxTOC {
		return nil, nil, fmt.Errorf("%w: it would be at %d with %d bytes", errNoIndex, at, size)
	}
	packed, err := b.read(ctx, at, size)
	if err != nil {
		return nil, nil, err
	}
	if entries, err = decodeIndex(f, packed, b.layer.TOC); err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if e == nil {
			return nil, nil, invalid("the index has an empty entry")
		}
		if e.Type == "reg" || e.Type == "chunk" {
			if e.Offset < 0 || e.Offset >= payload {
				return nil, nil, invalid("file %.200q is at %d, outside of the layer", e.Name, e.Offset)
			}
			offsets = append(offsets, e.Offset)
		}
	}
	offsets = append(offsets, payload)
	slices.Sort(offsets)
	return entries, slices.Compact(offsets), nil
}

// parseFooter finds the index. The library expects a header with an extra field of 26 bytes.
func parseFooter(f format, footer []byte) (payload, at, size int64, err error) {
	if _, ok := f.(*estargz.GzipDecompressor); ok {
		zr, err := gzip.NewReader(bytes.NewReader(footer))
		if err != nil || len(zr.Extra) != 26 {
			return 0, 0, 0, errNoIndex
		}
	}
	if payload, at, size, err = f.ParseFooter(footer); err != nil {
		err = fmt.Errorf("%w: %v", errNoIndex, err)
	}
	return payload, at, size, err
}

func decodeIndex(f format, packed []byte, want string) ([]*estargz.TOCEntry, error) {
	text, err := f.DecompressTOC(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errNoIndex, err)
	}
	defer text.Close()
	sum := sha256.New()
	limited := &io.LimitedReader{R: text, N: maxTOC}
	var index estargz.JTOC
	if err := json.NewDecoder(io.TeeReader(limited, sum)).Decode(&index); err != nil {
		return nil, fmt.Errorf("%w: %v", errNoIndex, err)
	}
	if _, err := io.Copy(sum, limited); err != nil {
		return nil, fmt.Errorf("%w: %v", errNoIndex, err)
	}
	if got := digest.NewDigest(digest.SHA256, sum).String(); got != want || limited.N <= 0 {
		return nil, fmt.Errorf("the index of the layer has digest %s, not %s: %w", got, want, errdefs.ErrDataLoss)
	}
	return index.Entries, nil
}
