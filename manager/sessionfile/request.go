package sessionfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
)

// send sends a request to the runner and returns its first answer. The caller gives the connection back
// with pool.put, or ends it with Close. The connection also ends with the context of the visit.
func (v *fileRequest) send(q containerfile.Request) (*conn, *containerfile.Answer, error) {
	for {
		c := v.h.pool.get(v.kernel.ID)
		kept := c != nil
		if !kept {
			var err error
			if c, err = dial(v.rpc, v.kernel.ID); err != nil {
				return nil, nil, err
			}
		}
		a, err := v.sendOn(c, q)
		if err == nil {
			return c, a, nil
		}
		var refused *refusal
		if errors.As(err, &refused) {
			v.h.pool.put(c)
			return nil, nil, err
		}
		c.Close()
		if v.r.Context().Err() != nil {
			return nil, nil, v.over()
		}
		if !kept { // one that was kept may have ended with its container
			return nil, nil, c.explain(err)
		}
	}
}

// sendOn sends a request on a connection.
func (v *fileRequest) sendOn(c *conn, q containerfile.Request) (*containerfile.Answer, error) {
	stop := v.until(c)
	var late atomic.Bool
	timer := time.AfterFunc(callTime, func() { c.Close(); late.Store(true) })
	a, err := v.exchange(c, q)
	timed, open := !timer.Stop(), stop()
	switch {
	case timed && late.Load():
		return nil, &refusal{noAnswer()}
	case timed || !open: // the connection is being closed
		return nil, cmp.Or(v.r.Context().Err(), context.Canceled)
	}
	return a, err
}

func (v *fileRequest) exchange(c *conn, q containerfile.Request) (*containerfile.Answer, error) {
	if err := c.Send(q); err != nil && !errors.Is(err, io.EOF) { // the answer has the reason for EOF
		return nil, err
	}
	return v.readAnswer(c)
}

// readAnswer reads an answer.
func (v *fileRequest) readAnswer(c *conn) (*containerfile.Answer, error) {
	var a containerfile.Answer
	if err := c.Receive(&a); err != nil {
		return nil, err
	}
	v.stall.Reset(stallTime)
	if a.Failure != nil {
		return nil, refused(a.Failure)
	}
	return &a, nil
}

// until ends the connection when the request ends before stop is called, which reports whether it was
// called in time.
func (v *fileRequest) until(c *conn) (stop func() bool) {
	return context.AfterFunc(v.r.Context(), c.Close)
}

// keep gives a connection back after stop, so that the end of this request is not the end of the next
// one.
func (v *fileRequest) keep(c *conn, stop func() bool) {
	if stop() {
		v.h.pool.put(c)
	}
}

// over is the error of a request whose context has ended.
func (v *fileRequest) over() error {
	if errors.Is(v.r.Context().Err(), context.DeadlineExceeded) {
		return noAnswer()
	}
	return problem.Aborted("the request has ended")
}

func noAnswer() *problem.Error {
	return problem.Unavailable("the container did not answer in time; it may be out of CPU time or memory")
}

// refusal is a failure that the runner reports, after which the connection can be used again.
type refusal struct{ why *problem.Error }

// Error implements error.
func (r *refusal) Error() string { return r.why.Error() }

// Unwrap returns the problem.
func (r *refusal) Unwrap() error { return r.why }

// refused converts a failure. A container can send any text.
func refused(f *containerfile.Failure) error {
	text := clean(f.Message)
	var p *problem.Error
	switch f.Class {
	case containerfile.Invalid:
		p = problem.Invalid("path", "%s", text)
	case containerfile.NotFound:
		p = problem.NotFound(strings.TrimSuffix(text, ": no such file or directory")).WithField("path")
	case containerfile.Exists:
		p = problem.Exists("path", "%s", text)
	case containerfile.Denied:
		p = problem.Forbidden("%s, for the user of the container", text).WithField("path")
	case containerfile.Changed:
		p = problem.Changed("If-Match", "%s", text)
	case containerfile.WrongOffset:
		p = problem.Aborted("%s", text).WithField("offset")
	case containerfile.NoSpace:
		p = problem.Full("%s", text)
	default:
		p = problem.Precondition("%s", text).WithField("path")
	}
	return &refusal{p}
}

// clean makes a text from a container safe for a message.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return text
}

// checkPath checks a path of a request. An empty one is the home directory.
func checkPath(field, p string) error {
	switch {
	case len(p) > folderpath.MaxPath:
		return problem.Invalid(field, "has %d bytes", len(p)).WithLimit(fmt.Sprint(folderpath.MaxPath))
	case strings.IndexByte(p, 0) >= 0:
		return problem.Invalid(field, "has a NUL byte")
	case !utf8.ValidString(p):
		return problem.Invalid(field, "is not UTF-8; files with such names can be reached in the terminal")
	}
	return nil
}

// checkNew checks the path of a file or directory that is to be created.
func checkNew(field, p string) error {
	if err := checkPath(field, p); err != nil {
		return err
	}
	switch name := path.Base(p); {
	case p == "" || strings.HasSuffix(p, "/") || name == "." || name == "..":
		return problem.Invalid(field, "does not end with a name")
	case len(name) > folderpath.MaxName:
		return problem.Invalid(field, "has a name of %d bytes", len(name)).WithLimit(fmt.Sprint(folderpath.MaxName))
	case !folderpath.Legible(name) || strings.ContainsRune(name, utf8.RuneError):
		return problem.Invalid(field, "has a name with characters that cannot be displayed")
	}
	return nil
}

// pathOf returns the path of a request's query.
func pathOf(r *http.Request) (string, error) {
	p := r.URL.Query().Get("path")
	return p, checkPath("path", p)
}

// quoted returns a path for the audit log.
func quoted(p string) string { return fmt.Sprintf("%.400q", p) }
