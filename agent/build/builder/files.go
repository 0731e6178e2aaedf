package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/agent/build"
)

// parts reads blobs of a repository one after the other, and checks the digest of each.
type parts struct {
	ctx     context.Context
	from    remotes.FetcherByDigest
	left    []string
	body    io.ReadCloser // nil: the next part is not open
	sum     digest.Verifier
	current string
}

// fetch returns the archive that was sent in parts.
func fetch(ctx context.Context, f build.Files) (io.ReadCloser, error) {
	if len(f.Parts) == 0 {
		return &parts{}, nil
	}
	hosts, err := hostsOf(f.Way, f.Username, f.Password)
	if err != nil {
		return nil, err
	}
	fetcher, err := docker.NewResolver(docker.ResolverOptions{Hosts: hosts}).Fetcher(ctx, f.Name+"@"+f.Parts[0])
	if err != nil {
		return nil, fmt.Errorf("read the files of the build: %w", err)
	}
	from, ok := fetcher.(remotes.FetcherByDigest)
	if !ok {
		return nil, errors.New("the client of registries cannot read blobs by their digests")
	}
	return &parts{ctx: ctx, from: from, left: f.Parts}, nil
}

// Read implements io.Reader.
func (p *parts) Read(b []byte) (int, error) {
	for {
		if p.body == nil {
			if len(p.left) == 0 {
				return 0, io.EOF
			}
			if err := p.next(); err != nil {
				return 0, err
			}
		}
		n, err := p.body.Read(b)
		_, _ = p.sum.Write(b[:n])
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		_ = p.body.Close()
		p.body = nil
		if !p.sum.Verified() {
			return n, fmt.Errorf("part %s of the files has other content", p.current)
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (p *parts) next() error {
	p.current, p.left = p.left[0], p.left[1:]
	d, err := digest.Parse(p.current)
	if err != nil {
		return err
	}
	p.sum = d.Verifier()
	p.body, _, err = p.from.FetchByDigest(p.ctx, d, remotes.WithMediaType(ocispec.MediaTypeImageLayer))
	if err != nil {
		return fmt.Errorf("read part %s of the files: %w", d, err)
	}
	return nil
}

// Close implements io.Closer.
func (p *parts) Close() error {
	if p.body == nil {
		return nil
	}
	return p.body.Close()
}

// explained adds the limit to the error of a full disk.
func explained(err error, root string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	_, total, e := diskOf(root)
	if e != nil {
		return errors.Join(err, e)
	}
	return fmt.Errorf("the disk of the project's builds on this machine is full: it has %d bytes: %w", total, err)
}
