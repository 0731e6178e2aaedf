package store

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// Blob opens a blob of a repository, and returns NotFound for one that another repository has.
func (s *Store) Blob(repository string, d digest.Digest) (*os.File, error) {
	target, err := readLink(s.link(repository, layers, d))
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.data(target))
	return f, missing(err)
}

// Use returns the size of a blob, and keeps sweeps from removing the blob for the grace time: a client
// that asks for it is about to push a manifest that refers to it.
func (s *Store) Use(repository string, d digest.Digest) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.use(repository, layers, d)
}

// use is Use for callers with the lock.
func (s *Store) use(repository, kind string, d digest.Digest) (int64, error) {
	path := s.link(repository, kind, d)
	target, err := readLink(path)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(s.data(target))
	if err != nil {
		return 0, missing(err)
	}
	s.touch(d, target)
	now := time.Now()
	return info.Size(), missing(os.Chtimes(path, now, now))
}

// Usage returns the number and the bytes of the blobs of a repository.
func (s *Store) Usage(repository string) (n int, bytes int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = s.links(repository, layers, func(d digest.Digest, path string, _ time.Time) error {
		target, err := readLink(path)
		if err != nil {
			return ignoreMissing(err)
		}
		info, err := os.Stat(s.data(target))
		if err != nil {
			return ignoreMissing(err)
		}
		n, bytes = n+1, bytes+info.Size()
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("add up the blobs of %s: %w", repository, err)
	}
	return n, bytes, nil
}

// Mount adds a blob of another repository to a repository.
func (s *Store) Mount(repository, from string, d digest.Digest) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := s.use(from, layers, d); err != nil {
		return fmt.Errorf("mount %s of %s: %w", d, from, err)
	}
	target, err := readLink(s.link(from, layers, d))
	if err != nil {
		return err
	}
	return s.writeLink(s.link(repository, layers, d), target)
}

// DeleteBlob removes a blob from a repository. The next sweep frees the content.
func (s *Store) DeleteBlob(repository string, d digest.Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return removeLink(s.link(repository, layers, d))
}

// removeLink removes a link and its directory.
func removeLink(path string) error {
	if err := os.Remove(path); err != nil {
		return missing(err)
	}
	// A temporary file of a killed process keeps the directory; the next sweep tries again.
	_ = os.RemoveAll(filepath.Dir(path))
	return nil
}

// add makes a finished file the content of a digest. Callers have the lock.
func (s *Store) add(file string, d digest.Digest) error {
	path := s.data(d)
	s.touch(d)
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		return os.Chtimes(path, now, now)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s.full(err)
	}
	if err := os.Rename(file, path); err != nil {
		return s.full(fmt.Errorf("store blob: %w", err))
	}
	return syncDir(dir)
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// errBusy reports a second request for one upload at a time.
var errBusy = fmt.Errorf("another request writes this upload: %w", errdefs.ErrAborted)
