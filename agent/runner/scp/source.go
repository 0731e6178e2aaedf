package scp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// source sends files to a client (-f).
type source struct {
	*peer
	options
}

func (s *source) run(paths []string) error {
	if ok, err := s.response(); err != nil || !ok {
		return errors.Join(err, errEnd)
	}
	for _, p := range paths {
		if err := s.send(p); err != nil {
			return err
		}
	}
	return nil
}

// send sends a file or, with -r, a directory. A file that cannot be read is reported and skipped.
func (s *source) send(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe must not block
	if err != nil {
		s.warn(wrap(err))
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		s.warn(wrap(err))
		return nil
	case st.IsDir() && s.recursive:
		return s.directoryOf(path, st)
	case !st.Mode().IsRegular():
		s.warn(fmt.Errorf("scp: %s: not a regular file", path))
		return nil
	}
	return s.file(path, f, st)
}

// announce sends the times, if requested, and the message of an entry. It reports whether the
// client accepts the entry.
func (s *source) announce(kind byte, path string, size int64, st fs.FileInfo) (bool, error) {
	if s.preserve {
		accessed := time.Unix(st.Sys().(*syscall.Stat_t).Atim.Unix())
		_, err := fmt.Fprintf(s.out, "T%d 0 %d 0\n", max(st.ModTime().Unix(), 0), max(accessed.Unix(), 0))
		if ok, err := s.answered(err); err != nil || !ok {
			return false, err
		}
	}
	_, err := fmt.Fprintf(s.out, "%c%04o %d %s\n", kind, st.Sys().(*syscall.Stat_t).Mode&0o7777, size, filepath.Base(path))
	return s.answered(err)
}

func (s *source) answered(err error) (bool, error) {
	if err := errors.Join(err, s.out.Flush()); err != nil {
		return false, err
	}
	return s.response()
}

func (s *source) directoryOf(path string, st fs.FileInfo) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		s.warn(wrap(err))
		return nil
	}
	if ok, err := s.announce('D', path, 0, st); err != nil || !ok {
		return err
	}
	for _, e := range entries {
		if err := s.send(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	_, err = s.out.WriteString("E\n")
	_, err = s.answered(err)
	return err
}

// file sends the content of a file. The size has already been sent, so bytes that cannot be read
// are replaced by zeros, followed by the error.
func (s *source) file(path string, f *os.File, st fs.FileInfo) error {
	if ok, err := s.announce('C', path, st.Size(), st); err != nil || !ok {
		return err
	}
	n, failed := io.CopyN(s.out, f, st.Size())
	if errors.Is(failed, io.EOF) {
		failed = fmt.Errorf("%s: the file became shorter", path)
	}
	if _, err := io.CopyN(s.out, zeros{}, st.Size()-n); err != nil {
		return err
	}
	if failed != nil {
		s.warn(wrap(failed))
	} else if err := s.ack(); err != nil {
		return err
	}
	_, err := s.response()
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
