// Package files reads and changes the files of a container for users of the page and the command
// line. The runner serves it on its stdin and stdout, as the container's user and in its
// namespaces, so users can do exactly what a process of the container can. It needs nothing from
// the image. The protocol is in package containerfile.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

// Serve answers the requests of one connection until it ends. Relative paths start at home.
func Serve(in io.Reader, out io.Writer, home string) error {
	s := &server{conn: containerfile.NewConn(in, out), home: home}
	defer s.close()
	for {
		var q containerfile.Request
		err := s.conn.Receive(&q)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.handle(q)
		}
		if err != nil {
			return err
		}
	}
}

// server is one connection.
type server struct {
	conn *containerfile.Conn
	home string
	file *os.File // the file that Open opened
}

func (s *server) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// handle answers a request. It returns an error if the connection cannot continue.
func (s *server) handle(q containerfile.Request) error {
	var a containerfile.Answer
	var err error
	switch q.Op {
	case containerfile.Archive:
		return s.archive(q)
	case containerfile.Read:
		return s.read(q)
	case containerfile.Write:
		return s.write(q)
	case containerfile.List:
		a.Listing, err = s.list(q)
	case containerfile.Open:
		a.Info, err = s.open(q)
	case containerfile.Partial:
		a.Offset, err = s.partial(q)
	case containerfile.Discard:
		err = s.discard(q)
	case containerfile.Mkdir:
		a.Results = s.each(q.Paths, s.mkdir)
	case containerfile.Remove:
		a.Results, err = s.remove(q)
	case containerfile.Move:
		a.Results = s.move(q)
	default:
		err = fail(containerfile.Invalid, "unknown operation %q", q.Op)
	}
	if err != nil {
		a = containerfile.Answer{Failure: failureOf(err)}
	}
	return s.conn.Send(a)
}

// each calls do for every path.
func (s *server) each(paths []string, do func(path string) error) []containerfile.Result {
	results := make([]containerfile.Result, len(paths))
	for i, path := range paths {
		results[i].Path = path
		if err := do(s.abs(path)); err != nil {
			results[i].Failure = failureOf(err)
		}
	}
	return results
}

// abs makes a path of a request absolute.
func (s *server) abs(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.home, path)
	}
	return filepath.Clean(path)
}

func fail(class, format string, args ...any) *containerfile.Failure {
	return &containerfile.Failure{Class: class, Message: fmt.Sprintf(format, args...)}
}

// classes are the codes of system errors that users can act on.
var classes = map[syscall.Errno]string{
	unix.ENOENT: containerfile.NotFound, unix.ENOTDIR: containerfile.NotFound,
	unix.EACCES: containerfile.Denied, unix.EPERM: containerfile.Denied, unix.EROFS: containerfile.Denied,
	unix.EEXIST: containerfile.Exists, unix.EISDIR: containerfile.Precondition,
	unix.ENOTEMPTY: containerfile.Precondition, unix.EBUSY: containerfile.Precondition, unix.EXDEV: containerfile.Precondition,
	unix.ETXTBSY: containerfile.Precondition, unix.EMFILE: containerfile.Precondition, unix.ENFILE: containerfile.Precondition,
	unix.EOPNOTSUPP: containerfile.Precondition,
	unix.ENOSPC:     containerfile.NoSpace, unix.EDQUOT: containerfile.NoSpace, unix.EFBIG: containerfile.NoSpace,
	unix.EINVAL: containerfile.Invalid, unix.ENAMETOOLONG: containerfile.Invalid, unix.ELOOP: containerfile.Invalid,
}

// failureOf converts an error to a failure with its path and the system's message.
func failureOf(err error) *containerfile.Failure {
	var f *containerfile.Failure
	if errors.As(err, &f) {
		return f
	}
	var no syscall.Errno
	if !errors.As(err, &no) {
		return fail(containerfile.Broken, "%s", err)
	}
	words := no.Error()
	if no == unix.EXDEV {
		words = "the new place is on another disk; use mv in the terminal"
	}
	path := ""
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		path = p.Path
	case errors.As(err, &l):
		path = l.Old
	}
	if path != "" {
		words = quote(path) + ": " + words
	}
	return fail(cmp.Or(classes[no], containerfile.Broken), "%s", words)
}

// quote shortens and escapes a path for a message.
func quote(path string) string {
	if len(path) > 200 {
		path = "…" + strings.ToValidUTF8(path[len(path)-200:], "")
	}
	return fmt.Sprintf("%q", path)
}
