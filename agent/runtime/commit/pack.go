package commit

import (
	"crypto/sha256"
	"errors"
	"io"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/containerd/stargz-snapshotter/estargz/zstdchunked"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// encoders is the number of goroutines that compress. It is a constant, so that machines with
// different processors write the same bytes.
const encoders = 2

// packer compresses an archive.
type packer interface {
	io.Writer
	// finish ends the archive, and sets what is known of it.
	finish(l *Layer) error
	// abort releases everything. After finish it does nothing.
	abort()
}

// plain is one stream of zstd.
type plain struct {
	*counted
	to *zstd.Encoder
}

func newPlain(w io.Writer) (*plain, error) {
	to, err := newEncoder(w)
	return &plain{&counted{w: to, sum: sha256.New()}, to}, err
}

func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(encoders), zstd.WithWindowSize(4<<20))
}

func (p *plain) finish(l *Layer) error {
	l.DiffID, l.Raw = digest.NewDigest(digest.SHA256, p.sum), p.n
	return p.to.Close()
}

func (p *plain) abort() { p.to.Close() }

// indexed is zstd:chunked: a stream for each file or 4 MiB of it, and an index of them in frames that other
// readers skip.
type indexed struct {
	*io.PipeWriter
	raw    counted
	to     *estargz.Writer
	format *chunked
	ended  chan error
}

// chunked compresses like plain.
type chunked struct{ zstdchunked.Compressor }

func (*chunked) Writer(w io.Writer) (estargz.WriteFlushCloser, error) { return newEncoder(w) }

func newIndexed(w io.Writer) *indexed {
	from, to := io.Pipe()
	p := &indexed{PipeWriter: to, format: &chunked{zstdchunked.Compressor{CompressionLevel: zstd.SpeedDefault, Metadata: map[string]string{}}}, ended: make(chan error, 1)}
	p.raw = counted{w: to, sum: sha256.New()}
	p.to = estargz.NewWriterWithCompressor(w, p.format)
	go func() {
		err := p.to.AppendTar(from)
		from.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		p.ended <- err
	}()
	return p
}

func (p *indexed) Write(b []byte) (int, error) { return p.raw.Write(b) }

func (p *indexed) finish(l *Layer) error {
	if err := errors.Join(p.PipeWriter.Close(), <-p.ended); err != nil {
		return err
	}
	index, err := p.to.Close()
	if err != nil {
		return err
	}
	l.DiffID, l.Raw = digest.Digest(p.to.DiffID()), p.raw.n
	l.Annotations = p.format.Metadata
	l.Annotations[estargz.TOCJSONDigestAnnotation] = index.String()
	return nil
}

func (p *indexed) abort() { p.PipeWriter.CloseWithError(io.ErrClosedPipe) }
