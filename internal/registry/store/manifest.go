package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/internal/wholefile"
)

// MaxManifest is the size limit of a manifest in bytes.
const MaxManifest = 4 << 20

// The media types of manifests that Docker made before there were those of OCI.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Manifest is a manifest or an index, as far as the store reads it.
type Manifest struct {
	Digest digest.Digest `json:"-"`
	Body   []byte        `json:"-"`

	SchemaVersion int                  `json:"schemaVersion"`
	MediaType     string               `json:"mediaType"`
	ArtifactType  string               `json:"artifactType"`
	Config        *ocispec.Descriptor  `json:"config"`
	Layers        []ocispec.Descriptor `json:"layers"`
	Manifests     []ocispec.Descriptor `json:"manifests"`
	Subject       *ocispec.Descriptor  `json:"subject"`
	Annotations   map[string]string    `json:"annotations"`
}

// errParts reports a text that clients could read as an image and as an index.
var errParts = errors.New("a manifest has a config and layers or manifests, and not both")

// ParseManifest reads a manifest. mediaType is what the client calls it, or "".
func ParseManifest(body []byte, mediaType string) (*Manifest, error) {
	m := &Manifest{Body: body}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("read manifest: %w: %w", err, errdefs.ErrInvalidArgument)
	}
	if err := m.check(mediaType); err != nil {
		return nil, fmt.Errorf("%w: %w", err, errdefs.ErrInvalidArgument)
	}
	return m, nil
}

func (m *Manifest) check(mediaType string) error {
	if m.SchemaVersion != 2 {
		return fmt.Errorf("schemaVersion %d of the manifest is not 2", m.SchemaVersion)
	}
	index, known := m.Manifests != nil || m.isIndex(), []string{ocispec.MediaTypeImageManifest, dockerManifest}
	if index {
		known = []string{ocispec.MediaTypeImageIndex, dockerList}
	}
	if m.MediaType == "" {
		m.MediaType = known[0]
	}
	switch {
	case index && (m.Config != nil || m.Layers != nil), !index && m.Config == nil:
		return errParts
	case !slices.Contains(known, m.MediaType):
		return fmt.Errorf("media type %.200q of the manifest is none of %q", m.MediaType, known)
	case mediaType != "" && mediaType != m.MediaType:
		return fmt.Errorf("content type %.200q differs from the media type %.200q of the manifest", mediaType, m.MediaType)
	}
	for _, d := range m.all() {
		if _, err := ParseDigest(d.Digest.String()); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) isIndex() bool {
	return m.MediaType == ocispec.MediaTypeImageIndex || m.MediaType == dockerList
}

// blobs returns the configuration and the layers.
func (m *Manifest) blobs() []ocispec.Descriptor {
	if m.Config == nil {
		return m.Layers
	}
	return append([]ocispec.Descriptor{*m.Config}, m.Layers...)
}

func (m *Manifest) all() []ocispec.Descriptor {
	out := slices.Concat(m.blobs(), m.Manifests)
	if m.Subject != nil {
		out = append(out, *m.Subject)
	}
	return out
}

// PutManifest stores a manifest whose parts the repository has, and gives it tags.
func (s *Store) PutManifest(repository string, m *Manifest, tags ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(int64(len(m.Body))); err != nil {
		return err
	}
	if err := s.parts(repository, m); err != nil {
		return err
	}
	s.touch(m.Digest)
	if err := s.write(m); err != nil {
		return s.full(fmt.Errorf("store manifest: %w", err))
	}
	if err := s.refer(repository, m); err != nil {
		return err
	}
	if err := s.writeLink(s.link(repository, revisions, m.Digest), m.Digest); err != nil {
		return err
	}
	for _, t := range tags {
		if err := s.tag(repository, t, m.Digest); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) write(m *Manifest) error {
	path := s.data(m.Digest)
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		return os.Chtimes(path, now, now)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, m.Body)
}

// MissingError names a part that a repository does not have.
type MissingError struct{ Digest digest.Digest }

func (e *MissingError) Error() string { return fmt.Sprintf("the repository has no %s", e.Digest) }

// parts verifies that the repository has the parts of a manifest, and keeps them from sweeps.
func (s *Store) parts(repository string, m *Manifest) error {
	for _, d := range m.blobs() {
		size, err := s.use(repository, layers, d.Digest)
		if errdefs.IsNotFound(err) && len(d.URLs) > 0 {
			continue // content of another place, which no registry has
		}
		if err := part(d, size, err); err != nil {
			return err
		}
	}
	for _, d := range m.Manifests {
		size, err := s.use(repository, revisions, d.Digest)
		if err := part(d, size, err); err != nil {
			return err
		}
	}
	return nil
}

func part(d ocispec.Descriptor, size int64, err error) error {
	if errdefs.IsNotFound(err) {
		return &MissingError{d.Digest}
	}
	if err == nil && size != d.Size {
		return fmt.Errorf("%s has %d bytes, and the manifest says %d: %w", d.Digest, size, d.Size, errdefs.ErrInvalidArgument)
	}
	return err
}

// Manifest returns a manifest of a repository.
func (s *Store) Manifest(repository string, d digest.Digest) (*Manifest, error) {
	target, err := readLink(s.link(repository, revisions, d))
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(s.data(target))
	if err != nil {
		return nil, missing(err)
	}
	m, err := ParseManifest(body, "")
	if err != nil {
		return nil, err
	}
	m.Digest = d
	return m, nil
}

// UseManifest keeps sweeps from removing a manifest for the grace time.
func (s *Store) UseManifest(repository string, d digest.Digest) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.use(repository, revisions, d)
	return err
}

// DeleteManifest removes a manifest and its tags from a repository. The next sweep frees the content.
func (s *Store) DeleteManifest(repository string, d digest.Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteManifest(repository, d)
}

func (s *Store) deleteManifest(repository string, d digest.Digest) error {
	if _, err := readLink(s.link(repository, revisions, d)); err != nil {
		return err
	}
	tags, err := s.tags(repository)
	if err != nil {
		return err
	}
	for name, of := range tags {
		if of == d {
			if err := s.untag(repository, name); err != nil {
				return err
			}
		}
	}
	if m, err := s.Manifest(repository, d); err == nil {
		if err := s.unrefer(repository, m); err != nil {
			return err
		}
	}
	return removeLink(s.link(repository, revisions, d))
}
