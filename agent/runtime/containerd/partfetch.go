package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/clock"
)

// partFetch fetches one part of an image.
type partFetch struct {
	*fetch
	desc ocispec.Descriptor
	ref  string // of the download in containerd

	asked   bool             // other agents were asked
	arrival *arrival         // nil: other agents cannot read the part yet
	senders int              // sources of the bytes that are present; unknown ones count
	last    runtime.PeerPart // the latest source, nil = a mirror or the registry
	source  string           // of the latest fetch
	mirror  int              // that is asked next, from f.mirrors
	tries   int              // fetches from the registry that failed
}

// writeError is an error of this host's disk, not of a source.
type writeError struct{ error }

// Unwrap returns the error of containerd.
func (e writeError) Unwrap() error { return e.error }

// noRanges reports whether a registry cannot send a part from the middle on.
func noRanges(err error) bool {
	var status remoteerrors.ErrUnexpectedStatus
	return errors.As(err, &status) && status.StatusCode == http.StatusRequestedRangeNotSatisfiable
}

// errWrong means that the bytes do not have the digest of the part.
var errWrong = fmt.Errorf("the bytes do not have this digest: %w", errdefs.ErrDataLoss)

// run fetches the part from one source after the other until it is present.
func (p *partFetch) run(ctx context.Context) (err error) {
	store := p.runtime.client.ContentStore()
	defer func() { p.runtime.arriving.end(p.desc.Digest, p.arrival, err) }()
	wait := firstRetry
	for range maxSources {
		w, err := content.OpenWriter(ctx, store, content.WithRef(p.ref), content.WithDescriptor(p.desc))
		if errdefs.IsAlreadyExists(err) {
			return nil
		}
		if err != nil {
			return err
		}
		err = p.try(ctx, w)
		_ = w.Close()
		switch {
		case err == nil || errdefs.IsAlreadyExists(err):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errWrong), noRanges(err): // from the first byte
			if err := p.discard(ctx, store); err != nil {
				return err
			}
		case errors.As(err, new(writeError)):
			return errors.Join(err, p.discard(ctx, store))
		case p.source == fromRegistry && final(err):
			return err
		}
		if p.source != fromRegistry {
			continue
		}
		if p.tries++; p.tries == registryTries {
			return err
		}
		if clock.Pause(ctx, wait) != nil {
			return ctx.Err()
		}
		wait *= 2
	}
	return fmt.Errorf("%d sources did not deliver it: %w", maxSources, errdefs.ErrUnavailable)
}

// try fetches the missing bytes from one source and commits the part.
func (p *partFetch) try(ctx context.Context, w content.Writer) error {
	st, err := w.Status()
	if err != nil {
		return err
	}
	if st.Offset > 0 && p.senders == 0 {
		p.senders = 2 // an earlier pull has left it
	}
	if p.arrival == nil {
		p.arrive(st.Offset)
	}
	p.last, p.source = nil, fromRegistry
	if st.Offset < p.desc.Size {
		from, err := p.open(ctx, st.Offset)
		if err != nil {
			p.count(fromRegistry, "failed")
			return err
		}
		defer from.Close()
		if err := p.copy(w, from, p.desc.Size-st.Offset); err != nil {
			if p.source != fromAgent {
				p.count(p.source, "failed")
				p.nextMirror()
			}
			return err
		}
	}
	err = w.Commit(ctx, p.desc.Size, p.desc.Digest)
	switch {
	case err == nil || errdefs.IsAlreadyExists(err):
		p.count(p.source, "ok")
	case errdefs.IsFailedPrecondition(err):
		if p.last != nil && p.senders == 1 {
			p.last.Corrupt(ctx)
		}
		if p.last == nil {
			p.count(p.source, "corrupt")
			p.nextMirror()
		}
		return fmt.Errorf("%w: %v", errWrong, err)
	}
	return err
}

// arrive lets other agents read the part while it arrives.
func (p *partFetch) arrive(available int64) {
	if p.req.Peers == nil {
		return
	}
	if path := p.runtime.ingestFile(p.ref); path != "" {
		p.arrival = p.runtime.arriving.begin(p.desc.Digest, path, p.desc.Size, available)
	}
}

// discard removes the bytes that are present, and withdraws them from the agents that read them.
func (p *partFetch) discard(ctx context.Context, store content.Store) error {
	p.runtime.arriving.end(p.desc.Digest, p.arrival, errWrong)
	p.arrival, p.senders = nil, 0
	// containerd closes the file of a writer a little after the writer was closed, and cannot remove it before.
	for range 50 {
		err := store.Abort(ctx, p.ref)
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if err := clock.Pause(ctx, closing); err != nil {
			return err
		}
	}
	return fmt.Errorf("remove a part of an image: it is still open: %w", errdefs.ErrUnavailable)
}

// closing is the interval at which discard tries again.
const closing = 20 * time.Millisecond

// open opens the part at the source that is best now.
func (p *partFetch) open(ctx context.Context, offset int64) (io.ReadCloser, error) {
	if p.root != nil && p.desc.Digest.String() == p.req.Digest {
		p.asked = p.req.Peers != nil // by resolve
		return io.NopCloser(bytes.NewReader(p.root[offset:])), nil
	}
	if p.req.Peers != nil {
		p.asked = true
		from, err := p.req.Peers.Open(ctx, runtime.PartRequest{Digest: p.desc.Digest.String(), Offset: offset, Documents: p.known()})
		if err != nil {
			return nil, err
		}
		if from != nil {
			p.last, p.source = from, fromAgent
			return from, nil
		}
	}
	if from := p.openMirror(ctx, offset); from != nil {
		return from, nil
	}
	return p.openAt(ctx, p.resolver, offset)
}

// openAt opens the part at the registry or a mirror. Errors of the server can also come from the first read.
func (p *partFetch) openAt(ctx context.Context, resolver remotes.Resolver, offset int64) (io.ReadCloser, error) {
	fetcher, err := resolver.Fetcher(ctx, p.req.Reference)
	if err != nil {
		return nil, err
	}
	from, err := fetcher.Fetch(ctx, p.desc)
	if err != nil {
		return nil, err
	}
	if s, ok := from.(io.Seeker); ok && offset > 0 {
		if _, err := s.Seek(offset, io.SeekStart); err != nil {
			_ = from.Close()
			return nil, err
		}
		return p.counted(from), nil
	}
	if _, err := io.CopyN(io.Discard, from, offset); err != nil {
		_ = from.Close()
		return nil, err
	}
	return p.counted(from), nil
}

// counted counts the bytes of the registry or a mirror.
func (p *partFetch) counted(from io.ReadCloser) io.ReadCloser {
	return counted{from, p.source, p.runtime.cfg.Fetched}
}

// counted counts bytes from a source.
type counted struct {
	io.ReadCloser
	source string
	to     Fetched
}

// Read implements io.Reader.
func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if c.to != nil {
		c.to.Received(c.source, n)
	}
	return n, err
}

// copy writes exactly n bytes of a source.
func (p *partFetch) copy(w io.Writer, from io.Reader, n int64) error {
	buf := make([]byte, min(copySize, n))
	for first := true; n > 0; {
		got, err := io.ReadFull(from, buf[:min(int64(len(buf)), n)])
		if got > 0 {
			if first {
				p.senders++
				first = false
			}
			if _, err := w.Write(buf[:got]); err != nil {
				return writeError{err}
			}
			p.arrival.grown(got)
			p.received(got, p.source)
			n -= int64(got)
		}
		if n > 0 && err != nil {
			return fmt.Errorf("%d bytes missing: %w", n, err)
		}
	}
	return nil
}
