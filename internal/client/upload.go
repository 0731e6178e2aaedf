package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

// chunkBytes is what one PATCH carries: large enough that the round trip does
// not count, small enough to hold in memory and to send again.
const chunkBytes = 8 << 20

const statusChecksumMismatch = 460

// Upload is one file on its way to a folder, by tus 1.0. It can be run again
// after an error, or made anew with Location, and goes on where the server is.
type Upload struct {
	Target UploadTarget
	Source io.ReaderAt
	Size   int64
	// Location is the server's address of the unfinished upload; "" until the
	// server has made one. One from an earlier run may have been completed and
	// its file deleted since, so a complete one does not count.
	Location string
	// Created, if set, hears of a new Location.
	Created func(location string)
	// Progress, if set, hears of the number of bytes that the server has.
	Progress func(offset int64)
	// Told, if set, hears of pauses.
	Told func(error)
}

// Run sends what the server does not have yet.
func (u *Upload) Run(ctx context.Context, c *Client) error {
	offset, restarts := int64(-1), 0 // -1: ask the server
	earlier := u.Location
	err := persist(ctx, u.Told, func() (bool, error) {
		before := offset
		var err error
		if offset < 0 {
			if offset, err = u.locate(ctx, c); err != nil {
				return false, err
			}
			if offset == u.Size && u.Location == earlier {
				u.Location, earlier, offset = "", "", -1
				return true, errCut
			}
		}
		earlier = ""
		for offset < u.Size {
			if offset, err = u.send(ctx, c, offset); err != nil {
				break
			}
		}
		progress := offset > before
		if errdefs.IsNotFound(err) && restarts < 3 { // the server forgot it
			restarts++
			u.Location, offset = "", -1
			return progress, errCut
		}
		if errdefs.IsUnavailable(err) || errdefs.IsAborted(err) || errdefs.IsDataLoss(err) {
			offset = -1
			return progress, fmt.Errorf("%w: %w", errCut, err)
		}
		return progress, err
	})
	if err != nil {
		return fmt.Errorf("upload %s: %w", u.Target.Path, err)
	}
	return nil
}

// locate returns how much the server has, after making the upload if need be.
func (u *Upload) locate(ctx context.Context, c *Client) (int64, error) {
	if u.Location != "" {
		resp, err := u.request(ctx, c, http.MethodHead, u.Location, nil, nil, http.StatusOK, http.StatusNoContent)
		switch {
		case err == nil:
			if length := resp.Header.Get("Upload-Length"); length != "" && length != strconv.FormatInt(u.Size, 10) {
				return 0, &Error{Code: codeFailedPrecondition, Message: fmt.Sprintf("the unfinished upload is for %s bytes, the file has %d", length, u.Size)}
			}
			return u.advanced(resp)
		case !errdefs.IsNotFound(err) && !errdefs.IsPermissionDenied(err) && !errdefs.IsUnauthorized(err):
			return 0, err
		}
	}
	resp, err := u.request(ctx, c, http.MethodPost, u.Target.URL, http.Header{
		"Upload-Length": {strconv.FormatInt(u.Size, 10)},
	}, nil, http.StatusCreated)
	if err != nil {
		return 0, err
	}
	location, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return 0, &Error{Code: codeInternal, Message: "the storage proxy named no place for the upload"}
	}
	u.Location = location.String()
	if u.Created != nil {
		u.Created(u.Location)
	}
	return 0, nil
}

// send moves one chunk and returns the new offset.
func (u *Upload) send(ctx context.Context, c *Client, offset int64) (int64, error) {
	chunk := make([]byte, min(chunkBytes, u.Size-offset))
	if _, err := u.Source.ReadAt(chunk, offset); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the file became shorter than %d bytes: %w", u.Size, errdefs.ErrFailedPrecondition)
		}
		return offset, err
	}
	sum := sha256.Sum256(chunk)
	resp, err := u.request(ctx, c, http.MethodPatch, u.Location, http.Header{
		"Content-Type":    {"application/offset+octet-stream"},
		"Upload-Offset":   {strconv.FormatInt(offset, 10)},
		"Upload-Checksum": {"sha256 " + base64.StdEncoding.EncodeToString(sum[:])},
	}, bytes.NewReader(chunk), http.StatusNoContent, http.StatusOK)
	if err != nil {
		return offset, err
	}
	return u.advanced(resp)
}

func (u *Upload) advanced(resp *http.Response) (int64, error) {
	offset, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 || offset > u.Size {
		return 0, &Error{Code: codeInternal, Message: fmt.Sprintf("the storage proxy reports the offset %q", resp.Header.Get("Upload-Offset"))}
	}
	if u.Progress != nil {
		u.Progress(offset)
	}
	return offset, nil
}

func (u *Upload) request(ctx context.Context, c *Client, method, address string, h http.Header, body io.Reader, ok ...int) (*http.Response, error) {
	full, err := c.resolve(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, full, body)
	if err != nil {
		return nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Authorization", "Bearer "+u.Target.Ticket)
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == statusChecksumMismatch {
		resp.Body.Close()
		return nil, fmt.Errorf("the bytes changed on their way: %w", errdefs.ErrDataLoss)
	}
	if err := refused(resp, ok...); err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp, resp.Body.Close()
}

// resolve makes an absolute address out of one that may lack the server.
func (c *Client) resolve(address string) (string, error) {
	ref, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("the server named a wrong address: %w", err)
	}
	if ref.IsAbs() {
		return address, nil
	}
	if !strings.HasPrefix(address, "/") {
		return "", fmt.Errorf("the server named the relative address %q: %w", address, errdefs.ErrInternal)
	}
	return c.base.Scheme + "://" + c.base.Host + address, nil
}
