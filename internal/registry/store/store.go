package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/berthhq/berth/internal/wholefile"
)

// Store is a directory of blobs and repositories. One process uses it.
type Store struct {
	root    string // <dir>/docker/registry/v2
	reserve int64  // bytes of the disk that uploads leave free

	// mu keeps a sweep from removing content that a request has just found. Requests that add a link to
	// content have it for reading, those that change manifests and the removal of one object for writing.
	mu sync.RWMutex

	using   sync.Mutex
	uploads map[string]*upload
	touched map[string]bool // what requests used during a sweep; nil without one
	sweeps  sync.Mutex      // one sweep at a time
}

// maxReserve is the most that uploads leave free on the disk: the database can be on the same one.
const maxReserve = 256 << 20

// Open opens the store in a directory, which exists.
func Open(dir string) (*Store, error) {
	s := &Store{root: filepath.Join(dir, "docker", "registry", "v2"), uploads: map[string]*upload{}}
	for _, d := range []string{"blobs", "repositories"} {
		if err := os.MkdirAll(filepath.Join(s.root, d), 0o700); err != nil {
			return nil, err
		}
	}
	_, total, err := s.space()
	if err != nil {
		return nil, err
	}
	s.reserve = min(maxReserve, total/20)
	return s, nil
}

// Limits of names.
const (
	maxRepository = 255
	maxTag        = 128
)

var (
	repositoryRule = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRule        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)
)

// ValidRepository reports whether a name is one of a repository.
func ValidRepository(name string) bool {
	return len(name) <= maxRepository && repositoryRule.MatchString(name)
}

// ValidTag reports whether a name is one of a tag.
func ValidTag(name string) bool { return len(name) <= maxTag && tagRule.MatchString(name) }

// ParseDigest returns a digest of a supported algorithm. Paths contain digests, so no other text passes.
func ParseDigest(text string) (digest.Digest, error) {
	d := digest.Digest(text)
	if err := d.Validate(); err != nil {
		return "", fmt.Errorf("digest %.200q: %w: %w", text, err, errdefs.ErrInvalidArgument)
	}
	if a := d.Algorithm(); a != digest.SHA256 && a != digest.SHA512 {
		return "", fmt.Errorf("digest %.200q: the algorithm is neither sha256 nor sha512: %w", text, errdefs.ErrInvalidArgument)
	}
	return d, nil
}

// The kinds of links that a repository has to content.
const (
	layers    = "_layers"
	revisions = "_manifests/revisions"
)

func (s *Store) repository(name string, parts ...string) string {
	return filepath.Join(append([]string{s.root, "repositories", filepath.FromSlash(name)}, parts...)...)
}

func (s *Store) link(repository, kind string, d digest.Digest) string {
	return s.repository(repository, kind, d.Algorithm().String(), d.Encoded(), "link")
}

func (s *Store) tagLink(repository, tag string) string {
	return s.repository(repository, "_manifests", "tags", tag, "current", "link")
}

func (s *Store) data(d digest.Digest) string {
	return filepath.Join(s.root, "blobs", d.Algorithm().String(), d.Encoded()[:2], d.Encoded(), "data")
}

// readLink returns the digest that a link has, and NotFound without the link.
func readLink(path string) (digest.Digest, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", missing(err)
	}
	return ParseDigest(strings.TrimSpace(string(text)))
}

// writeLink creates a link, or renews its time.
func (s *Store) writeLink(path string, d digest.Digest) error {
	if old, err := readLink(path); err == nil && old == d {
		now := time.Now()
		return os.Chtimes(path, now, now)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return s.full(err)
	}
	return s.full(wholefile.Write(path, []byte(d.String())))
}

// missing adds the class of a missing file.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errdefs.ErrNotFound, err)
	}
	return err
}

// touch records for a running sweep that a request uses content.
func (s *Store) touch(of ...digest.Digest) {
	s.using.Lock()
	defer s.using.Unlock()
	if s.touched == nil {
		return
	}
	for _, d := range of {
		s.touched[d.String()] = true
	}
}

func (s *Store) inUse(d digest.Digest) bool {
	s.using.Lock()
	defer s.using.Unlock()
	return s.touched[d.String()]
}
