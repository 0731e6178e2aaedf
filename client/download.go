package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
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
