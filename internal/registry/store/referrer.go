package store

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// referrers is the directory of the manifests that refer to a subject. The subject need not exist.
func (s *Store) referrers(repository string, subject digest.Digest, parts ...string) string {
	return s.repository(repository, append([]string{"_referrers", subject.Algorithm().String(), subject.Encoded()}, parts...)...)
}

func referrerName(d digest.Digest) string { return d.Algorithm().String() + "-" + d.Encoded() }

// refer records the subject of a manifest.
func (s *Store) refer(repository string, m *Manifest) error {
	if m.Subject == nil {
		return nil
	}
	path := s.referrers(repository, m.Subject.Digest, referrerName(m.Digest))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return s.full(err)
	}
	return s.writeLink(path, m.Digest)
}

func (s *Store) unrefer(repository string, m *Manifest) error {
	if m.Subject == nil {
		return nil
	}
	if err := os.Remove(s.referrers(repository, m.Subject.Digest, referrerName(m.Digest))); err != nil {
		return ignoreMissing(err)
	}
	_ = os.Remove(s.referrers(repository, m.Subject.Digest)) // fails while others refer to it
	return nil
}

// Referrers returns the manifests that refer to a subject, in the order of their digests. An entry whose
// manifest is missing, as after a killed process, is left out.
func (s *Store) Referrers(repository string, subject digest.Digest) ([]ocispec.Descriptor, error) {
	entries, err := os.ReadDir(s.referrers(repository, subject))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var out []ocispec.Descriptor
	for _, e := range entries {
		d, err := readLink(s.referrers(repository, subject, e.Name()))
		if err != nil {
			continue // a temporary file
		}
		m, err := s.Manifest(repository, d)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m.Descriptor())
	}
	return slices.CompactFunc(out, func(a, b ocispec.Descriptor) bool { return a.Digest == b.Digest }), nil
}

// Descriptor describes the manifest as an answer of the referrers API has it.
func (m *Manifest) Descriptor() ocispec.Descriptor {
	kind := m.ArtifactType
	if kind == "" && m.Config != nil {
		kind = m.Config.MediaType
	}
	return ocispec.Descriptor{
		MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Body)), ArtifactType: kind, Annotations: m.Annotations,
	}
}
