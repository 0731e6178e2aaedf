package scp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sink writes the files that a client sends (-t).
type sink struct {
	*peer
	options
	mask fs.FileMode
}

func (s *sink) run(paths []string) error {
	if !s.preserve {
		old := syscall.Umask(0) // it cannot be read without a change
		syscall.Umask(old)
		s.mask = fs.FileMode(old)
	}
	target := paths[0]
	st, err := os.Stat(target)
	isDir := err == nil && st.IsDir()
	if s.directory && !isDir {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: target, Err: syscall.ENOTDIR}
		}
		s.warn(wrap(err))
		return errEnd
	}
	if err := s.ack(); err != nil {
		return err
	}
	return s.receive(target, isDir, false)
}

// times are the times for the next file.
type times struct{ modified, accessed time.Time }

// receive handles messages until the end of the directory or, at the top level, of the input.
func (s *sink) receive(target string, isDir, nested bool) error {
	var at *times
	for {
		kind, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) && !nested {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := s.line()
		if err != nil {
			return err
		}
		switch kind {
		case 1:
			s.failed = true
			continue
		case 2:
			return errEnd
		case 'E':
			return s.ack()
		case 'T':
			if at, err = parseTimes(text); err == nil {
				err = s.ack()
			}
		case 'C', 'D':
			err = s.entry(kind, text, target, isDir, at)
			at = nil
		default:
			err = fmt.Errorf("scp: unexpected message %q", kind)
		}
		if err != nil {
			s.warn(err)
			return err
		}
	}
}

func parseTimes(text string) (*times, error) {
	var m, mu, a, au int64
	if n, err := fmt.Sscanf(text, "%d %d %d %d", &m, &mu, &a, &au); n != 4 || err != nil {
		return nil, fmt.Errorf("scp: times %q are not understood", text)
	}
	return &times{time.Unix(m, mu*1000), time.Unix(a, au*1000)}, nil
}

// entry receives a file or directory: its message is MODE SIZE NAME.
func (s *sink) entry(kind byte, text, target string, isDir bool, at *times) error {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return fmt.Errorf("scp: message %q is not understood", text)
	}
	mode, err := strconv.ParseUint(parts[0], 8, 12)
	if err != nil {
		return fmt.Errorf("scp: mode %q is not understood", parts[0])
	}
	size, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || size < 0 {
		return fmt.Errorf("scp: size %q is not understood", parts[1])
	}
	name := parts[2]
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("scp: unexpected file name %q", name)
	}
	if isDir {
		target = filepath.Join(target, name)
	}
	if kind == 'D' {
		return s.subdirectory(target, fileMode(mode), at)
	}
	return s.file(target, fileMode(mode), size, at)
}

// fileMode converts the number of a message.
func fileMode(n uint64) fs.FileMode {
	mode := fs.FileMode(n & 0o777)
	for _, b := range []struct {
		bit  uint64
		mode fs.FileMode
	}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}} {
		if n&b.bit != 0 {
			mode |= b.mode
		}
	}
	return mode
}

func (s *sink) subdirectory(path string, mode fs.FileMode, at *times) error {
	if !s.recursive {
		return errors.New("scp: received a directory without -r")
	}
	st, err := os.Stat(path)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		// The owner needs access until its files are written.
		err = os.Mkdir(path, mode.Perm()|0o700)
	} else if err == nil && !st.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		s.warn(wrap(err))
		return nil // the client skips the directory
	}
	if err := s.ack(); err != nil {
		return err
	}
	if err := s.receive(path, true, true); err != nil {
		return err
	}
	if at != nil {
		err = os.Chtimes(path, at.accessed, at.modified)
	}
	if s.preserve || created {
		err = errors.Join(err, os.Chmod(path, mode&^s.mask))
	}
	if err != nil { // the end of the directory has been acknowledged
		s.failed = true
	}
	return nil
}

// file receives the content of a file. After an error the rest is read and dropped, so that the
// copy can continue.
func (s *sink) file(path string, mode fs.FileMode, size int64, at *times) error {
	_, err := os.Stat(path)
	created := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, mode.Perm()|0o200)
	if err != nil {
		s.warn(wrap(err))
		return nil // the client skips the file
	}
	defer f.Close()
	if err := s.ack(); err != nil {
		return err
	}
	content := &io.LimitedReader{R: s.in, N: size}
	_, failed := io.Copy(f, content)
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if content.N > 0 {
		return io.ErrUnexpectedEOF
	}
	if st, err := f.Stat(); failed == nil && err == nil && st.Mode().IsRegular() {
		failed = f.Truncate(size)
	}
	if s.preserve || created {
		failed = errors.Join(failed, f.Chmod(mode&^s.mask))
	}
	failed = errors.Join(failed, f.Close())
	if at != nil {
		failed = errors.Join(failed, os.Chtimes(path, at.accessed, at.modified))
	}
	if _, err := s.response(); err != nil {
		return err
	}
	if failed != nil {
		s.warn(wrap(failed))
		return nil
	}
	return s.ack()
}

// wrap converts an error to an error message of scp.
func wrap(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("scp: %s: %w", p.Path, describe(p.Err))
	}
	return fmt.Errorf("scp: %w", err)
}

// describe replaces errors by their wording in the C library, which users know.
func describe(err error) error {
	var n syscall.Errno
	if errors.As(err, &n) && len(n.Error()) > 0 {
		text := n.Error()
		return errors.New(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}
