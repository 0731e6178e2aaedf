package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/containerd/errdefs"
)

// FullError reports that the disk of the registry has no room. It is a ResourceExhausted.
type FullError struct {
	Free    int64 // bytes that are free
	Reserve int64 // bytes that stay free
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of the registry is full: %d bytes are free, of which %d stay reserved", e.Free, e.Reserve)
}

// Unwrap returns the class.
func (e *FullError) Unwrap() error { return errdefs.ErrResourceExhausted }

// space returns the free and the total bytes of the disk.
func (s *Store) space() (free, total int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.root, &st); err != nil {
		return 0, 0, fmt.Errorf("read the free space of %s: %w", s.root, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

// room returns a FullError unless the disk has room for n more bytes.
func (s *Store) room(n int64) error {
	free, _, err := s.space()
	if err != nil {
		return err
	}
	if free-n < s.reserve {
		return &FullError{Free: free, Reserve: s.reserve}
	}
	return nil
}

// full converts the error of a write on a full disk.
func (s *Store) full(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	free, _, e := s.space()
	return errors.Join(&FullError{Free: free, Reserve: s.reserve}, e)
}
