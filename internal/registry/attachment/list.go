package attachment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/registry/remote"
)

// Kind is what an attachment is.
type Kind string

// The kinds.
const (
	Signature       Kind = "signature"
	SBOM            Kind = "sbom"
	Vulnerabilities Kind = "vulnerabilities"
	Other           Kind = "other"
)

// Attachment is one document.
type Attachment struct {
	Kind     Kind
	Type     string // media type, as the registry says
	Format   string // such as SPDX 2.3; "" if it is not read
	Digest   string // of the manifest
	Size     int64  // bytes
	Packages []Package
	Severity map[string]int // number of vulnerabilities, by severity in capitals
	Problem  string         // why the document could not be read
}

// Package is an entry of an SBOM.
type Package struct{ Name, Version, License string }

// Limits of what is read of one image.
const (
	maxAttachments = 20
	maxDocument    = 16 << 20
	maxTotal       = 48 << 20
	maxPackages    = 20_000
)

// List reads the attachments of a digest of a repository. A document that is too large or broken is listed
// with its problem.
func List(ctx context.Context, c *remote.Client, repository, digest string) ([]Attachment, error) {
	found, err := c.Referrers(ctx, repository, digest)
	if err != nil {
		return nil, err
	}
	left := int64(maxTotal)
	out := []Attachment{}
	for _, d := range found {
		if len(out) >= maxAttachments {
			break
		}
		m, err := c.Artifact(ctx, repository, d.Digest)
		if errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) {
			out = append(out, Attachment{Kind: Other, Type: d.ArtifactType, Digest: d.Digest, Size: d.Size, Problem: plain(err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range m.Layers {
			if len(out) >= maxAttachments {
				break
			}
			one := Attachment{Kind: kindOf(l.MediaType, m.Type), Type: l.MediaType, Digest: m.Digest, Size: l.Size}
			if one.Kind == SBOM || one.Kind == Vulnerabilities || wrapped(l.MediaType) || l.MediaType == "application/json" {
				if err := one.load(ctx, c, repository, l, &left); err != nil {
					return nil, err
				}
			}
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b Attachment) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return out, nil
}

// load reads the document.
func (a *Attachment) load(ctx context.Context, c *remote.Client, repository string, d remote.Descriptor, left *int64) error {
	content, err := c.Blob(ctx, repository, d, min(maxDocument, *left))
	switch {
	case errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		a.Problem = plain(err)
		return nil
	case err != nil:
		return err
	}
	*left -= int64(len(content))
	if err := a.read(content); err != nil {
		a.Problem = plain(err)
	}
	return nil
}

func wrapped(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/vnd.dev.sigstore.bundle.") ||
		mediaType == "application/vnd.dsse.envelope.v1+json" || mediaType == "application/vnd.in-toto+json"
}

// kindOf guesses what a document is from its media type and that of its manifest.
func kindOf(types ...string) Kind {
	for _, t := range types {
		t = strings.ToLower(t)
		switch {
		case strings.Contains(t, "simplesigning"), strings.Contains(t, "cncf.notary.signature"):
			return Signature
		case strings.Contains(t, "spdx"), strings.Contains(t, "cyclonedx"):
			return SBOM
		case strings.Contains(t, "sarif"), strings.Contains(t, "vulnerability"), strings.Contains(t, "trivy"), strings.Contains(t, "grype"):
			return Vulnerabilities
		}
	}
	return Other
}

// plain is the text of an error without the class at its end.
func plain(err error) string {
	return strings.ReplaceAll(fmt.Sprint(err), ": "+errdefs.ErrInvalidArgument.Error(), "")
}
