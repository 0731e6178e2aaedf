package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

// Download is one file, or a directory as a zip, on its way from a folder.
type Download struct {
	Folder string // id
	Path   string // "" = the whole folder
	// Progress, if set, hears of the bytes written and of all there are, -1
	// when that is not known.
	Progress func(done, total int64)
	// Told, if set, hears of pauses.
	Told func(error)

	validator string // what the bytes so far are a part of
	done      int64
}

// CopyTo writes the bytes to w, each once. When the connection breaks it goes
// on from there, unless the file has changed.
func (d *Download) CopyTo(ctx context.Context, c *Client, w io.Writer) error {
	err := persist(ctx, d.Told, func() (bool, error) {
		before := d.done
		err := d.once(ctx, c, w)
		return d.done > before, err
	})
	if err != nil {
		return fmt.Errorf("download %s: %w", strings.TrimSuffix(d.Path, "/"), err)
	}
	return nil
}

func (d *Download) once(ctx context.Context, c *Client, w io.Writer) error {
	out, err := createDownload(ctx, c, CreateDownloadInput{Vfolder: d.Folder, Path: d.Path})
	if err != nil {
		return err
	}
	address, err := c.resolve(out.CreateDownload.URL)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", c.userAgent)
	// A transparently unzipped answer has neither length nor byte offsets.
	req.Header.Set("Accept-Encoding", "identity")
	if d.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
		req.Header.Set("If-Range", d.validator)
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := d.continues(resp); err != nil {
		return err
	}
	return d.copy(ctx, resp, w)
}

// continues checks that the answer continues where we are.
func (d *Download) continues(resp *http.Response) error {
	if d.done == 0 {
		d.validator = resp.Header.Get("ETag")
		if d.validator == "" || strings.HasPrefix(d.validator, "W/") {
			d.validator = resp.Header.Get("Last-Modified")
		}
		return nil
	}
	var from int64
	if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err != nil || from != d.done || resp.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("it changed meanwhile; start again: %w", errdefs.ErrFailedPrecondition)
	}
	return nil
}

func (d *Download) copy(ctx context.Context, resp *http.Response, w io.Writer) error {
	total := int64(-1)
	if resp.ContentLength >= 0 {
		total = d.done + resp.ContentLength
	}
	buf := make([]byte, 128<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			d.done += int64(n)
			if d.Progress != nil {
				d.Progress(d.done, total)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && (total < 0 || d.done == total):
			return nil
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.validator == "" && d.done > 0:
			return fmt.Errorf("connection lost after %s bytes, and it cannot be resumed: %w", strconv.FormatInt(d.done, 10), errdefs.ErrAborted)
		default:
			return unreachable(resp.Request.URL, err)
		}
	}
}
