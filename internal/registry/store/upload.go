package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// upload is what the process knows of an upload. The file has the bytes.
type upload struct {
	busy   bool
	sum    hash.Hash // sha256 of the first summed bytes
	summed int64
}

var uploadRule = regexp.MustCompile(`^[a-zA-Z0-9-]{8,64}$`)

func (s *Store) uploadFile(repository, id string) string {
	return s.repository(repository, "_uploads", id, "data")
}

// StartUpload creates an upload and returns its id.
func (s *Store) StartUpload(repository string) (string, error) {
	if err := s.room(0); err != nil {
		return "", err
	}
	s.mu.RLock() // a sweep removes repositories that are empty
	defer s.mu.RUnlock()
	id := strings.ToLower(rand.Text())
	path := s.uploadFile(repository, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", s.full(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", s.full(err)
	}
	return id, f.Close()
}

// UploadSize returns the number of bytes that an upload has.
func (s *Store) UploadSize(repository, id string) (int64, error) {
	if !uploadRule.MatchString(id) {
		return 0, fmt.Errorf("upload %.100q: %w", id, errdefs.ErrNotFound)
	}
	info, err := os.Stat(s.uploadFile(repository, id))
	if err != nil {
		return 0, missing(err)
	}
	return info.Size(), nil
}

// take gives an upload to one request.
func (s *Store) take(repository, id string) (*upload, func(), error) {
	if _, err := s.UploadSize(repository, id); err != nil {
		return nil, nil, err
	}
	s.using.Lock()
	defer s.using.Unlock()
	u := s.uploads[id]
	if u == nil {
		u = &upload{sum: digest.SHA256.Hash()}
		s.uploads[id] = u
	}
	if u.busy {
		return nil, nil, errBusy
	}
	u.busy = true
	return u, func() {
		s.using.Lock()
		defer s.using.Unlock()
		u.busy = false
	}, nil
}

// chunk is the number of bytes between two checks of the free space.
const chunk = 32 << 20

// ErrTooLarge reports an upload that exceeds the limit of its caller.
var ErrTooLarge = errors.New("the upload exceeds its limit")

// Append adds bytes to an upload and returns its size. at is the offset that the client expects, or -1.
// An upload that would have more bytes than limit, or that fills the disk, is removed.
func (s *Store) Append(ctx context.Context, repository, id string, body io.Reader, at, limit int64) (int64, error) {
	u, release, err := s.take(repository, id)
	if err != nil {
		return 0, err
	}
	defer release()
	f, err := os.OpenFile(s.uploadFile(repository, id), os.O_RDWR, 0)
	if err != nil {
		return 0, missing(err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if at >= 0 && at != size {
		return size, fmt.Errorf("the upload has %d bytes, and the request begins at %d: %w", size, at, errdefs.ErrOutOfRange)
	}
	size, err = s.copy(ctx, f, u, body, size, limit)
	if full := new(FullError); errors.Is(err, ErrTooLarge) || errors.As(err, &full) {
		return 0, errors.Join(err, s.drop(repository, id))
	}
	return size, err
}

// copy appends the body to the file at its end.
func (s *Store) copy(ctx context.Context, f *os.File, u *upload, body io.Reader, size, limit int64) (int64, error) {
	known := u.summed == size
	for {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		if err := s.room(0); err != nil {
			return size, err
		}
		dst := io.Writer(f)
		if known {
			dst = io.MultiWriter(f, u.sum)
		}
		n, err := io.CopyN(dst, body, min(chunk, limit-size+1))
		size += n
		if known {
			u.summed = size
		}
		switch {
		case size > limit:
			return size, ErrTooLarge
		case err == io.EOF:
			return size, nil
		case err != nil:
			return size, s.full(err)
		}
	}
}

// Finish verifies an upload and adds its content to the repository. An upload with another digest is
// removed.
func (s *Store) Finish(repository, id string, d digest.Digest) error {
	u, release, err := s.take(repository, id)
	if err != nil {
		return err
	}
	defer release()
	path := s.uploadFile(repository, id)
	got, err := s.verify(path, u, d.Algorithm())
	if err != nil {
		return s.full(err)
	}
	if got != d {
		return errors.Join(fmt.Errorf("the content has the digest %s instead of %s: %w", got, d, errdefs.ErrInvalidArgument), s.drop(repository, id))
	}
	if err := s.finish(repository, path, d); err != nil {
		return err
	}
	return s.drop(repository, id)
}

func (s *Store) finish(repository, path string, d digest.Digest) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.add(path, d); err != nil {
		return err
	}
	return s.writeLink(s.link(repository, layers, d), d)
}

// verify writes a file to the disk and returns its digest.
func (s *Store) verify(path string, u *upload, of digest.Algorithm) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", missing(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if of == digest.SHA256 && u.summed == info.Size() {
		return digest.NewDigest(of, u.sum), nil
	}
	return of.FromReader(f)
}

// Cancel removes an upload.
func (s *Store) Cancel(repository, id string) error {
	_, release, err := s.take(repository, id)
	if err != nil {
		return err
	}
	defer release()
	return s.drop(repository, id)
}

func (s *Store) drop(repository, id string) error {
	s.using.Lock()
	delete(s.uploads, id)
	s.using.Unlock()
	return os.RemoveAll(filepath.Dir(s.uploadFile(repository, id)))
}

// PurgeUploads removes the uploads that no request has written to for an age, and returns their bytes.
func (s *Store) PurgeUploads(ctx context.Context, age time.Duration, dryRun bool) (count int, bytes int64, err error) {
	before := time.Now().Add(-age)
	err = s.Repositories(func(repository string) error {
		entries, err := os.ReadDir(s.repository(repository, "_uploads"))
		if err != nil {
			return ignoreMissing(err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			path := s.uploadFile(repository, e.Name())
			info, err := os.Stat(path)
			if err != nil { // of a killed process: a directory without its file
				if info, err = e.Info(); err != nil {
					continue
				}
			}
			if info.ModTime().After(before) || s.busy(e.Name()) {
				continue
			}
			count++
			if info.Mode().IsRegular() {
				bytes += info.Size()
			}
			if dryRun {
				continue
			}
			if err := s.drop(repository, e.Name()); err != nil {
				return err
			}
		}
		return nil
	})
	return count, bytes, err
}

func (s *Store) busy(id string) bool {
	s.using.Lock()
	defer s.using.Unlock()
	u := s.uploads[id]
	return u != nil && u.busy
}
