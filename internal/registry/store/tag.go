package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// Resolve returns the digest of a tag.
func (s *Store) Resolve(repository, tag string) (digest.Digest, error) {
	return readLink(s.tagLink(repository, tag))
}

// Tags returns the sorted tags of a repository, and NotFound for an unknown one.
func (s *Store) Tags(repository string) ([]string, error) {
	if _, err := os.Stat(s.repository(repository)); err != nil {
		return nil, missing(err)
	}
	tags, err := s.tags(repository)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(tags))
	for n := range tags {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

func (s *Store) tags(repository string) (map[string]digest.Digest, error) {
	entries, err := os.ReadDir(s.repository(repository, "_manifests", "tags"))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	out := map[string]digest.Digest{}
	for _, e := range entries {
		d, err := s.Resolve(repository, e.Name())
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read tag %s of %s: %w", e.Name(), repository, err)
		}
		out[e.Name()] = d
	}
	return out, nil
}

// tag moves a tag. The manifest that had it is untagged from now on.
func (s *Store) tag(repository, name string, d digest.Digest) error {
	old, err := s.Resolve(repository, name)
	if err == nil && old != d {
		s.retire(repository, old)
	}
	return s.writeLink(s.tagLink(repository, name), d)
}

// retire begins the time for which an untagged manifest is kept.
func (s *Store) retire(repository string, d digest.Digest) {
	now := time.Now()
	_ = os.Chtimes(s.link(repository, revisions, d), now, now) // the manifest may be gone
}

// Untag removes a tag.
func (s *Store) Untag(repository, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untag(repository, name)
}

func (s *Store) untag(repository, name string) error {
	d, err := s.Resolve(repository, name)
	if err != nil {
		return err
	}
	s.retire(repository, d)
	if err := os.Remove(s.tagLink(repository, name)); err != nil {
		return missing(err)
	}
	return os.RemoveAll(s.repository(repository, "_manifests", "tags", name))
}

// Repositories calls f for every repository, in order.
func (s *Store) Repositories(f func(name string) error) error {
	root := s.repository("")
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if !e.IsDir() {
			return nil
		}
		if strings.HasPrefix(e.Name(), "_") {
			return fs.SkipDir
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." || !isRepository(path) {
			return err
		}
		return f(filepath.ToSlash(name))
	})
}

func isRepository(path string) bool {
	for _, part := range []string{"_manifests", "_layers", "_uploads"} {
		if _, err := os.Stat(filepath.Join(path, part)); err == nil {
			return true
		}
	}
	return false
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
