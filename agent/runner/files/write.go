package files

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

// upload is a file that is being written. Its content is in a hidden file beside it until the end,
// so a reader never sees an incomplete file.
type upload struct {
	q      containerfile.Request
	path   string
	part   string
	file   *os.File
	kept   bool // the partial upload is kept after an interruption
	before os.FileInfo
}

// write receives a file. An interrupted upload that has a name can be continued at its offset.
func (s *server) write(q containerfile.Request) error {
	u, err := s.begin(q)
	if err != nil {
		return s.conn.Send(containerfile.Answer{Failure: failureOf(err)})
	}
	defer u.file.Close()
	if err := s.conn.Send(containerfile.Answer{Offset: q.Offset}); err != nil {
		return err
	}
	rest := q.Size - q.Offset
	n, err := s.conn.WriteTo(&limited{u.file, rest})
	if err != nil { // the client is gone, or the disk is full
		u.abandon()
		_ = s.conn.Send(containerfile.Answer{Failure: failureOf(err)}) // now, so that the client stops sending
		return err
	}
	if n < rest {
		u.abandon()
		return s.conn.Send(containerfile.Answer{Offset: q.Offset + n})
	}
	info, err := u.finish()
	if err != nil {
		return s.conn.Send(containerfile.Answer{Failure: failureOf(err)})
	}
	e := describe(u.path, info)
	e.Tag = tag(info)
	return s.conn.Send(containerfile.Answer{Offset: q.Size, Info: &e})
}

// limited writes at most n bytes.
type limited struct {
	file *os.File
	n    int64
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.n {
		return 0, fail(containerfile.Invalid, "more bytes were sent than the size of the file")
	}
	n, err := l.file.Write(p)
	l.n -= int64(n)
	return n, err
}

// place returns the path to write to, and the existing file. Links are followed.
func (s *server) place(q containerfile.Request) (path string, there os.FileInfo, err error) {
	path = s.abs(q.Path)
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", nil, err
		}
	}
	there, err = os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return path, nil, nil
	}
	if err == nil && !there.Mode().IsRegular() {
		err = notRegular(path, there)
	}
	return path, there, err
}

// conditions checks the request's conditions on the existing file.
func conditions(q containerfile.Request, path string, there os.FileInfo) error {
	switch {
	case q.Absent && there != nil:
		return fail(containerfile.Exists, "%s already exists", quote(path))
	case q.Tag != "" && (there == nil || tag(there) != q.Tag):
		return fail(containerfile.Changed, "%s has changed or no longer exists", quote(path))
	}
	return nil
}

// begin opens the hidden file at the offset.
func (s *server) begin(q containerfile.Request) (*upload, error) {
	if q.Size < 0 || q.Size > containerfile.MaxSize || q.Offset < 0 || q.Offset > q.Size {
		return nil, fail(containerfile.Invalid, "the size %d and the offset %d are not valid", q.Size, q.Offset)
	}
	path, there, err := s.place(q)
	if err != nil {
		return nil, err
	}
	if err := conditions(q, path, there); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	u := &upload{q: q, path: path, kept: q.Upload != "", before: there}
	if u.part, err = partOf(path, cmp.Or(q.Upload, strings.ToLower(rand.Text()))); err != nil {
		return nil, err
	}
	if u.file, err = os.OpenFile(u.part, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o666); err != nil {
		return nil, err
	}
	if err := u.seek(); err != nil {
		u.file.Close()
		return nil, err
	}
	return u, nil
}

// seek locks the hidden file for this connection, and goes to the offset.
func (u *upload) seek() error {
	if err := unix.Flock(int(u.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fail(containerfile.WrongOffset, "another connection is writing this upload")
	}
	info, err := u.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(u.part, info)
	}
	if info.Size() < u.q.Offset {
		return fail(containerfile.WrongOffset, "this upload has %d bytes, not %d", info.Size(), u.q.Offset)
	}
	if err := u.file.Truncate(u.q.Offset); err != nil {
		return err
	}
	_, err = u.file.Seek(u.q.Offset, io.SeekStart)
	return err
}

// abandon ends an interrupted upload.
func (u *upload) abandon() {
	if !u.kept {
		_ = os.Remove(u.part)
	}
}

// finish moves the file to its path, with the mode of the file that it replaces.
func (u *upload) finish() (os.FileInfo, error) {
	mode := os.FileMode(u.q.Mode).Perm()
	if u.before != nil {
		mode = u.before.Mode().Perm()
	}
	if mode != 0 {
		if err := u.file.Chmod(mode); err != nil {
			return nil, err
		}
	}
	if u.q.Modified != 0 {
		at := time.UnixMilli(u.q.Modified)
		if err := os.Chtimes(u.part, at, at); err != nil {
			return nil, err
		}
	}
	if u.q.Tag != "" { // checked again after the upload
		there, err := os.Stat(u.path)
		if err != nil {
			there = nil
		}
		if err := conditions(u.q, u.path, there); err != nil {
			return nil, err
		}
	}
	rename := os.Rename
	if u.q.Absent {
		rename = renameNew
	}
	if err := rename(u.part, u.path); err != nil {
		return nil, err
	}
	return u.file.Stat()
}

// renameNew renames a file to a name that must not exist.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EEXIST):
		return fail(containerfile.Exists, "%s already exists", quote(to))
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // some network file systems
		if _, err := os.Lstat(to); err == nil {
			return fail(containerfile.Exists, "%s already exists", quote(to))
		}
		return os.Rename(from, to)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// partOf returns the path of the hidden file of an upload. It does not contain the name of the
// file, which may already have the maximum length.
func partOf(path, name string) (string, error) {
	if !containerfile.GoodUpload(name) {
		return "", fail(containerfile.Invalid, "%.80q cannot name an upload", name)
	}
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".berth-upload-%s", name)), nil
}

// partial returns the number of stored bytes of an upload.
func (s *server) partial(q containerfile.Request) (int64, error) {
	path, _, err := s.place(q)
	if err != nil {
		return 0, err
	}
	part, err := partOf(path, q.Upload)
	if err != nil {
		return 0, err
	}
	info, err := os.Lstat(part)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// discard removes an unfinished upload.
func (s *server) discard(q containerfile.Request) error {
	path, _, err := s.place(q)
	if err != nil {
		return err
	}
	part, err := partOf(path, q.Upload)
	if err != nil {
		return err
	}
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
