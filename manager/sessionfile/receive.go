package sessionfile

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/problem"
)

// Written is the answer to an upload. File is null until the file is complete.
type Written struct {
	Offset int64  `json:"offset"`
	ETag   string `json:"etag,omitempty"`
	File   *File  `json:"file"`
}

// receive stores a file, or a part of one that another request continues.
func (v *fileRequest) receive() error {
	q, err := writeOf(v.r)
	if err != nil {
		return err
	}
	last := q.Upload == "" || v.r.ContentLength >= 0 && q.Offset+v.r.ContentLength >= q.Size
	if !last { // the file is not visible before it is complete
		return v.store(q)
	}
	begun, started := time.Now(), v.entry
	started.Message = quoted(q.Path)
	row, err := v.h.Audit.Begin(v.r.Context(), started)
	if err != nil {
		return err
	}
	err = v.store(q)
	if err != nil {
		started = started.Failed(err)
		started.Message = quoted(q.Path) + ": " + started.Message
	}
	started.Duration = time.Since(begun)
	row.End(v.r.Context(), started)
	return err
}

// writeOf returns the request of an upload.
func writeOf(r *http.Request) (q containerfile.Request, err error) {
	in := r.URL.Query()
	q = containerfile.Request{Op: containerfile.Write, Path: in.Get("path"), Upload: in.Get("upload")}
	if err := checkNew("path", q.Path); err != nil {
		return q, err
	}
	if q.Upload != "" && !containerfile.GoodUpload(q.Upload) {
		return q, badUpload()
	}
	q.Size = r.ContentLength
	for name, to := range map[string]*int64{"size": &q.Size, "offset": &q.Offset, "modified": &q.Modified} {
		text := in.Get(name)
		if text == "" {
			continue
		}
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 || *to > containerfile.MaxSize {
			return q, problem.Invalid(name, "must be a number from 0 to %d", int64(containerfile.MaxSize)).WithLimit("0.." + strconv.FormatInt(containerfile.MaxSize, 10))
		}
	}
	if text := in.Get("mode"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 16)
		if err != nil || mode == 0 || mode > 0o777 {
			return q, problem.Invalid("mode", "must be an octal number from 1 to 777").WithLimit("1..777")
		}
		q.Mode = uint32(mode)
	}
	switch {
	case q.Size < 0:
		return q, problem.Invalid("size", "is missing, and the request has no Content-Length")
	case q.Offset > q.Size:
		return q, problem.Invalid("offset", "%d is behind the end of the file", q.Offset).WithLimit("0.." + strconv.FormatInt(q.Size, 10))
	case q.Offset > 0 && q.Upload == "":
		return q, problem.Invalid("upload", "is missing; only an upload with a name can continue at an offset")
	case r.ContentLength > q.Size-q.Offset:
		return q, problem.Invalid("size", "is %d, but %d bytes are sent at %d", q.Size, r.ContentLength, q.Offset)
	}
	q.Tag = strings.Trim(r.Header.Get("If-Match"), `"`)
	if q.Tag != "" && !tagOf.MatchString(q.Tag) {
		return q, problem.Changed("If-Match", "the file has changed or no longer exists")
	}
	switch r.Header.Get("If-None-Match") {
	case "":
	case "*":
		q.Absent = true
	default:
		return q, problem.Invalid("If-None-Match", "must be *")
	}
	return q, nil
}

func badUpload() error {
	return problem.Invalid("upload", "must have 8 to 64 digits and lower-case letters").WithLimit("8..64")
}

// store sends the body to the runner and answers with the result.
func (v *fileRequest) store(q containerfile.Request) error {
	c, _, err := v.send(q)
	if err != nil {
		v.drain()
		return err
	}
	stop := v.until(c)
	defer stop()
	type result struct {
		a   *containerfile.Answer
		err error
	}
	done := make(chan result, 1) // the runner answers while the client still sends if the disk is full
	go func() {
		a, err := v.answerTo(c)
		if err != nil {
			c.Close() // so that the copy below ends
		}
		done <- result{a, err}
	}()
	_, err = io.Copy(struct{ io.Writer }{c.Conn}, struct{ io.Reader }{&body{v}})
	if err == nil {
		err = c.CloseWrite()
	}
	if lost := new(lostClient); errors.As(err, &lost) {
		c.Close()
		<-done
		return problem.Aborted("the connection of the client broke")
	}
	end := <-done
	if end.err != nil {
		v.drain()
		return end.err
	}
	v.keep(c, stop)
	return v.written(end.a)
}

// answerTo reads the answer at the end of an upload.
func (v *fileRequest) answerTo(c *conn) (*containerfile.Answer, error) {
	var a containerfile.Answer
	if err := c.Receive(&a); err != nil {
		if v.r.Context().Err() != nil {
			return nil, v.over()
		}
		return nil, c.explain(err)
	}
	if a.Failure != nil {
		return nil, refused(a.Failure)
	}
	return &a, nil
}

func (v *fileRequest) written(a *containerfile.Answer) error {
	out := Written{Offset: a.Offset}
	if a.Info != nil {
		f := fileOf(*a.Info)
		out.File = &f
		if tagOf.MatchString(a.Info.Tag) {
			out.ETag = `"` + a.Info.Tag + `"`
			v.w.Header().Set("ETag", out.ETag)
		}
	}
	return v.answer(out)
}

// body is the body of an upload.
type body struct{ v *fileRequest }

// lostClient is an error of the client's side.
type lostClient struct{ error }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.v.r.Body.Read(p)
	if n > 0 {
		b.v.moved(uploaded, n)
	}
	if err != nil && err != io.EOF {
		err = &lostClient{err}
	}
	return n, err
}

// drain reads a part of the rest of the body, so that the client sees the answer.
func (v *fileRequest) drain() {
	if v.r.Context().Err() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v.r.Body, drainBytes)
}

// partial answers with the number of bytes that are stored of an interrupted upload.
func (v *fileRequest) partial() error {
	c, a, err := v.unfinished(containerfile.Partial)
	if err != nil {
		return err
	}
	v.h.pool.put(c)
	return v.answer(Written{Offset: max(a.Offset, 0)})
}

// discard removes an interrupted upload.
func (v *fileRequest) discard() error {
	c, _, err := v.unfinished(containerfile.Discard)
	if err != nil {
		return err
	}
	v.h.pool.put(c)
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (v *fileRequest) unfinished(op string) (*conn, *containerfile.Answer, error) {
	q := containerfile.Request{Op: op, Path: v.r.URL.Query().Get("path"), Upload: v.r.URL.Query().Get("upload")}
	if err := checkNew("path", q.Path); err != nil {
		return nil, nil, err
	}
	if !containerfile.GoodUpload(q.Upload) {
		return nil, nil, badUpload()
	}
	return v.send(q)
}
