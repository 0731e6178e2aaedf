package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/containerd/errdefs"
)

// Download is one file of a folder, or a directory as a zip, that is downloaded.
type Download struct {
	Folder string // id
	Path   string // "" = the whole folder
	// Progress, if set, is called with the number of written bytes and the total, which is -1 if it
	// is unknown.
	Progress func(done, total int64)
	// Warn, if set, is called with the error before each pause.
	Warn func(error)

	arriving
}

// CopyTo writes the bytes to w, each once. When the connection breaks, it continues from there,
// unless the file has changed.
func (d *Download) CopyTo(ctx context.Context, c *Client, w io.Writer) error {
	d.request, d.progress = func(ctx context.Context) (*http.Request, error) { return d.ask(ctx, c) }, d.Progress
	if err := d.copyTo(ctx, c, w, d.Warn); err != nil {
		return fmt.Errorf("download %s: %w", strings.TrimSuffix(d.Path, "/"), err)
	}
	return nil
}

// ask makes the request for the file. Every attempt has an address of its own, which works for a short time.
func (d *Download) ask(ctx context.Context, c *Client) (*http.Request, error) {
	out, err := createDownload(ctx, c, CreateDownloadInput{Vfolder: d.Folder, Path: d.Path})
	if err != nil {
		return nil, err
	}
	address, err := c.resolve(out.CreateDownload.URL)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	return req, nil
}

// arriving is a file that is downloaded from a server, in as many requests as the connection needs.
type arriving struct {
	request  func(ctx context.Context) (*http.Request, error) // for the whole file
	progress func(done, total int64)                          // nil: unused; total -1: unknown

	validator string // identifies the version of the file that the bytes so far belong to
	done      int64
}

// copyTo writes the bytes to w, each once. When the connection breaks, it continues from there, unless the
// file has changed.
func (a *arriving) copyTo(ctx context.Context, c *Client, w io.Writer, told func(error)) error {
	return persist(ctx, told, func() (bool, error) {
		before := a.done
		err := a.once(ctx, c, w)
		return a.done > before, err
	})
}

func (a *arriving) once(ctx context.Context, c *Client, w io.Writer) error {
	req, err := a.request(ctx)
	if err != nil {
		return err
	}
	// A transparently unzipped answer has neither length nor byte offsets.
	req.Header.Set("Accept-Encoding", "identity")
	if a.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", a.done))
		req.Header.Set("If-Range", a.validator)
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := a.continues(resp); err != nil {
		return err
	}
	return a.copy(ctx, resp, w)
}

// continues checks that the answer begins at the current offset.
func (a *arriving) continues(resp *http.Response) error {
	if a.done == 0 {
		a.validator = resp.Header.Get("ETag")
		if a.validator == "" || strings.HasPrefix(a.validator, "W/") {
			a.validator = resp.Header.Get("Last-Modified")
		}
		return nil
	}
	var from int64
	if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err != nil || from != a.done || resp.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("the file changed while it was copied; start again: %w", errdefs.ErrFailedPrecondition)
	}
	return nil
}

func (a *arriving) copy(ctx context.Context, resp *http.Response, w io.Writer) error {
	total := int64(-1)
	if resp.ContentLength >= 0 {
		total = a.done + resp.ContentLength
	}
	buf := make([]byte, 128<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			a.done += int64(n)
			if a.progress != nil {
				a.progress(a.done, total)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && (total < 0 || a.done == total):
			return nil
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case a.validator == "" && a.done > 0:
			return fmt.Errorf("the connection was lost after %d bytes, and the file cannot be resumed: %w", a.done, errdefs.ErrAborted)
		default:
			return unreachable(resp.Request.URL, err)
		}
	}
}
