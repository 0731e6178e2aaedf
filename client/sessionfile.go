package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// ContainerRef names a container of a running session.
type ContainerRef struct {
	Session string // id
	Kernel  string // id; "" = the main container
}

// SessionFile is a file, directory or link in a container.
type SessionFile struct {
	Name       string    `json:"name"`
	Path       string    `json:"path"` // absolute
	Type       string    `json:"type"` // FILE, DIRECTORY, SYMLINK or OTHER
	Size       int64     `json:"size"`
	Mode       string    `json:"mode"` // in the format of ls
	ModifiedAt time.Time `json:"modifiedAt"`
	Target     string    `json:"target"`     // path that a link points to
	TargetType string    `json:"targetType"` // type of the file that a link points to
}

func (at ContainerRef) path(route string, q url.Values) string {
	if at.Kernel != "" {
		q.Set("kernel", at.Kernel)
	}
	return "/sessions/" + url.PathEscape(at.Session) + "/files" + route + "?" + q.Encode()
}

// SessionFiles lists a directory in a container; a relative path begins in the home directory.
func (c *Client) SessionFiles(ctx context.Context, at ContainerRef, path string) ([]SessionFile, error) {
	var all []SessionFile
	for after := ""; ; {
		var page struct {
			Files []SessionFile `json:"files"`
			Next  string        `json:"next"`
		}
		q := url.Values{"path": {path}}
		if after != "" {
			q.Set("after", after)
		}
		if err := c.rest(ctx, http.MethodGet, at.path("", q), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Files...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// MakeSessionDirectory creates a directory in a container, and its missing parents. The error has the
// class ALREADY_EXISTS if it exists.
func (c *Client) MakeSessionDirectory(ctx context.Context, at ContainerRef, path string) error {
	body, err := json.Marshal(map[string][]string{"paths": {path}})
	if err != nil {
		return err
	}
	var out struct {
		Results []struct{ Code, Error string } `json:"results"`
	}
	if err := c.rest(ctx, http.MethodPost, at.path("/directories", url.Values{}), body, &out); err != nil {
		return err
	}
	if len(out.Results) > 0 && out.Results[0].Code != "" {
		return &Error{Code: out.Results[0].Code, Message: out.Results[0].Error}
	}
	return nil
}

// rest sends a small request and reads its answer.
func (c *Client) rest(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := c.request(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// SessionArchive is a directory of a container as a tar stream, with paths below that directory.
// Reading it fails if it is not complete.
func (c *Client) SessionArchive(ctx context.Context, at ContainerRef, path string) (io.ReadCloser, error) {
	req, err := c.request(ctx, http.MethodGet, at.path("/archive", url.Values{"path": {path}, "format": {"tar"}}), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, refused(resp, http.StatusOK)
}

// SessionDownload is one file that is downloaded from a container.
type SessionDownload struct {
	ContainerRef
	Path string
	// Progress, if set, is called with the number of written bytes.
	Progress func(done int64)
	// Warn, if set, is called with the error before each pause.
	Warn func(error)

	arriving
}

// CopyTo writes the bytes to w, each once. When the connection breaks, it continues from there, unless
// the file has changed.
func (d *SessionDownload) CopyTo(ctx context.Context, c *Client, w io.Writer) error {
	d.request = func(ctx context.Context) (*http.Request, error) {
		return c.request(ctx, http.MethodGet, d.path("/content", url.Values{"path": {d.Path}}), nil)
	}
	d.progress = func(done, _ int64) {
		if d.Progress != nil {
			d.Progress(done)
		}
	}
	return d.copyTo(ctx, c, w, d.Warn)
}

// SessionUpload is one file that is uploaded into a container.
type SessionUpload struct {
	ContainerRef
	Path     string
	File     io.ReaderAt
	Size     int64
	Mode     uint32    // permissions of a new file
	Modified time.Time // zero: now
	// Progress, if set, is called with the number of bytes that arrived.
	Progress func(done int64)
	// Warn, if set, is called with the error before each pause.
	Warn func(error)

	name string
	done int64
}

// uploadPart is the size of one request, and so the largest part that is sent again after the
// connection was lost.
const uploadPart = 64 << 20

// Send sends the file. When the connection breaks, it continues from what has arrived. The file appears
// as a whole at the end.
func (u *SessionUpload) Send(ctx context.Context, c *Client) error {
	u.name = strings.ToLower(rand.Text())
	return persist(ctx, u.Warn, func() (bool, error) {
		before := u.done
		for {
			complete, err := u.once(ctx, c)
			if complete || err != nil {
				if errdefs.IsUnavailable(err) {
					err = errors.Join(err, u.ask(ctx, c))
				}
				return u.done > before, err
			}
		}
	})
}

func (u *SessionUpload) values() url.Values {
	return url.Values{"path": {u.Path}, "upload": {u.name}}
}

// ask requests the number of bytes that have arrived. It repeats the request until a server
// answers.
func (u *SessionUpload) ask(ctx context.Context, c *Client) error {
	var out struct {
		Offset int64 `json:"offset"`
	}
	err := c.rest(ctx, http.MethodGet, u.path("/upload", u.values()), nil, &out)
	if err == nil {
		u.done = min(out.Offset, u.Size)
	}
	if errdefs.IsUnavailable(err) {
		return nil
	}
	return err
}

// once sends a part, and reports whether the file is complete.
func (u *SessionUpload) once(ctx context.Context, c *Client) (bool, error) {
	q := u.values()
	q.Set("size", strconv.FormatInt(u.Size, 10))
	q.Set("offset", strconv.FormatInt(u.done, 10))
	if u.Mode != 0 {
		q.Set("mode", strconv.FormatUint(uint64(u.Mode), 8))
	}
	if !u.Modified.IsZero() {
		q.Set("modified", strconv.FormatInt(u.Modified.UnixMilli(), 10))
	}
	n := min(uploadPart, u.Size-u.done)
	req, err := c.request(ctx, http.MethodPut, u.path("/content", q), io.NewSectionReader(u.File, u.done, n))
	if err != nil {
		return false, err
	}
	req.ContentLength = n
	if n == 0 {
		req.Body = http.NoBody
	}
	resp, err := c.send(req)
	if err != nil {
		return false, err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var out struct {
		Offset int64        `json:"offset"`
		File   *SessionFile `json:"file"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return false, unreachable(resp.Request.URL, err)
	}
	u.done = out.Offset
	if u.Progress != nil {
		u.Progress(u.done)
	}
	if out.File == nil && out.Offset >= u.Size {
		return false, fmt.Errorf("the server has all bytes, but not the file: %w", errdefs.ErrInternal)
	}
	return out.File != nil, nil
}
