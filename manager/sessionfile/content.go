package sessionfile

import (
	"errors"
	"io"
	"net/http"
	"path"
	"regexp"

	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/filehttp"
	"github.com/berthhq/berth/internal/problem"
)

// maxUnsized limits files that report no size and have a content, such as those of /proc.
const maxUnsized = 64 << 20

// tagOf matches a valid tag of a file. Any other text could add a header from the container.
var tagOf = regexp.MustCompile(`^[0-9a-f-]{1,100}$`)

// content sends a file, with ranges, conditions and HEAD as net/http supports them. A file that
// changes is sent as it is read; one that becomes shorter breaks the connection.
func (v *fileRequest) content() error {
	p, err := pathOf(v.r)
	if err == nil {
		err = filehttp.CheckRanges(v.r)
	}
	if err != nil {
		return err
	}
	if v.r.Method != http.MethodHead {
		if err := v.record(quoted(p)); err != nil {
			return err
		}
	}
	c, a, err := v.send(containerfile.Request{Op: containerfile.Open, Path: p})
	if err != nil {
		return err
	}
	stop := v.until(c)
	defer stop()
	info := a.Info
	if info == nil || info.Size < 0 || info.Size > containerfile.MaxSize {
		c.Close()
		return broken()
	}
	name := path.Base(info.Path)
	h := v.w.Header()
	filehttp.Guard(h, name)
	h.Set("Content-Type", filehttp.ContentType(name))
	if tagOf.MatchString(info.Tag) {
		h.Set("ETag", `"`+info.Tag+`"`)
	}
	f := &file{v: v, c: c, size: info.Size}
	v.begun = true
	if info.Size == 0 {
		f.size = maxUnsized
		if v.r.Method != http.MethodHead {
			_, err = io.Copy(v.w, f)
		}
	} else {
		http.ServeContent(v.w, v.r, "", timeOf(info.Modified), f)
		err = f.failed
	}
	if err != nil || f.failed != nil {
		c.Close()
		return errors.Join(err, f.failed)
	}
	v.keep(c, stop)
	return nil
}

// file is the open file of a connection, for http.ServeContent.
type file struct {
	v      *fileRequest
	c      *conn
	size   int64
	at     int64
	chunk  []byte // read, and not passed on yet
	over   bool   // the file has ended
	failed error
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if len(f.chunk) == 0 {
		if f.failed != nil {
			return 0, f.failed
		}
		if f.over || f.at >= f.size {
			return 0, io.EOF
		}
		if f.failed = f.fill(); f.failed != nil {
			return 0, f.failed
		}
		if len(f.chunk) == 0 {
			f.over = true
			return 0, io.EOF
		}
	}
	n := copy(p, f.chunk)
	f.chunk = f.chunk[n:]
	f.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a file")
	}
	f.at, f.chunk, f.over = offset, nil, false
	return offset, nil
}

// fill reads the next part.
func (f *file) fill() error {
	want := min(containerfile.MaxRead, f.size-f.at)
	if err := f.c.Send(containerfile.Request{Op: containerfile.Read, Offset: f.at, Length: want}); err != nil && !errors.Is(err, io.EOF) {
		return f.c.explain(err)
	}
	if _, err := f.v.readAnswer(f.c); err != nil {
		return err
	}
	b := &buffer{v: f.v, max: int(want)}
	if _, err := f.c.WriteTo(b); err != nil {
		return err
	}
	f.chunk = b.b
	return nil
}

// buffer is data of a container up to a size.
type buffer struct {
	v   *fileRequest
	b   []byte
	max int
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	if len(b.b)+len(p) > b.max {
		return 0, broken()
	}
	b.v.moved(downloaded, len(p))
	b.b = append(b.b, p...)
	return len(p), nil
}

// archive sends a directory as zip or tar.
func (v *fileRequest) archive() error {
	p, err := pathOf(v.r)
	if err != nil {
		return err
	}
	format := v.r.URL.Query().Get("format")
	if format == "" {
		format = "zip"
	}
	kind, ok := map[string]string{"zip": "application/zip", "tar": "application/x-tar"}[format]
	if !ok {
		return problem.Invalid("format", "%.20q is neither zip nor tar", format)
	}
	if v.r.Method != http.MethodHead {
		if err := v.record(quoted(p)); err != nil {
			return err
		}
	}
	c, _, err := v.send(containerfile.Request{Op: containerfile.Archive, Path: p, Format: format})
	if err != nil {
		return err
	}
	stop := v.until(c)
	defer stop()
	name := path.Base(p)
	if name == "." || name == "/" {
		name = "files"
	}
	filehttp.Guard(v.w.Header(), name+"."+format)
	v.w.Header().Set("Content-Type", kind)
	v.begun = true
	if v.r.Method == http.MethodHead {
		c.Close()
		return nil
	}
	if _, err := c.WriteTo(&counted{v}); err != nil {
		c.Close()
		return err
	}
	v.keep(c, stop)
	return nil
}

// counted counts the bytes that are written to the client.
type counted struct{ v *fileRequest }

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.v.w.Write(p)
	c.v.moved(downloaded, n)
	return n, err
}
