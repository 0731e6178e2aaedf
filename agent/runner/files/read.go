package files

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

// openFile opens a regular file for reading. Other kinds are not even opened, because a FIFO would
// wait for its writer, and opening some devices has effects.
func openFile(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(path, info)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // it has just been replaced
		err = notRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func notRegular(path string, info os.FileInfo) error {
	if info.IsDir() {
		return fail(containerfile.Precondition, "%s is a directory", quote(path))
	}
	return fail(containerfile.Precondition, "%s is a device, a socket or a pipe, not a file", quote(path))
}

// open opens the file that the next requests read.
func (s *server) open(q containerfile.Request) (*containerfile.Info, error) {
	s.close()
	path := s.abs(q.Path)
	f, info, err := openFile(path)
	if err != nil {
		return nil, err
	}
	s.file = f
	e := describe(path, info)
	e.Tag = tag(info)
	return &e, nil
}

// read sends a part of the open file. It is shorter than requested only at the end of the file.
func (s *server) read(q containerfile.Request) error {
	if s.file == nil || q.Offset < 0 || q.Length < 0 || q.Length > containerfile.MaxRead {
		return s.conn.Send(containerfile.Answer{Failure: fail(containerfile.Invalid, "no file is open, or the range is not valid")})
	}
	if err := s.conn.Send(containerfile.Answer{}); err != nil {
		return err
	}
	buf := make([]byte, min(q.Length, containerfile.MaxData))
	for at, rest := q.Offset, q.Length; rest > 0; {
		n, err := s.file.ReadAt(buf[:min(int64(len(buf)), rest)], at)
		if n > 0 {
			if _, err := s.conn.Write(buf[:n]); err != nil {
				return err
			}
		}
		at, rest = at+int64(n), rest-int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return s.conn.Send(containerfile.Answer{Failure: failureOf(err)})
		}
	}
	return s.conn.CloseWrite()
}
