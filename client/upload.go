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
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// chunkBytes is the size of one PATCH: large enough that the round trip does not matter, and small
// enough to keep in memory and to send again.
const chunkBytes = 8 << 20

const statusChecksumMismatch = 460

// Upload is one file that is uploaded to a folder with tus 1.0. After an error it can be run again,
// or created again with Location. It continues at the server's offset.
type Upload struct {
	Target UploadTarget
	Source io.ReaderAt
	Size   int64
	// Modified is the modification time of the file; zero: the time of its arrival.
	Modified time.Time
	// Location is the server's address of the unfinished upload, or "" before the server has
	// created it. Another proxy of the volume, which a later ticket can name, has the upload under
	// the same last path element. An upload from an earlier run may have been completed and its
	// file deleted since, so a complete one does not count.
	Location string
	// Renew gets another ticket when the current one has expired, or its proxy is not reachable.
	Renew func(context.Context) (UploadTarget, error)
	// Created, if set, is called with a new Location.
	Created func(location string)
	// Progress, if set, is called with the number of bytes that the server has.
	Progress func(offset int64)
	// Warn, if set, is called with the error before each pause.
	Warn func(error)
}

// maxRepairs limits consecutive attempts that fail in the same way.
const maxRepairs = 3

// position is the state of an upload.
type position struct {
	offset  int64  // bytes at the server; -1: unknown
	best    int64  // the highest offset so far
	earlier string // a location of an earlier run, until it proves unfinished
	repairs int    // attempts since the last progress
	refused int    // refused tickets since a valid one
	lost    int    // consecutive attempts that reached no server
}

// Run sends what the server does not have yet.
func (u *Upload) Run(ctx context.Context, c *Client) error {
	at := position{earlier: u.Location, offset: -1}
	err := persist(ctx, u.Warn, func() (progress bool, err error) {
		if at.lost > 1 {
			if err := u.elsewhere(ctx); err != nil {
				return false, err
			}
		}
		for {
			err = u.advance(ctx, c, &at)
			if at.offset > at.best {
				at.best, at.repairs, at.lost, progress = at.offset, 0, 0, true
			}
			if err == nil {
				return progress, nil
			}
			// A fresh ticket can also expire before it is used.
			if renewed, err := u.repair(ctx, &at, err); !renewed {
				return progress, err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("upload %s: %w", u.Target.Path, err)
	}
	return nil
}

func (u *Upload) advance(ctx context.Context, c *Client, at *position) (err error) {
	if at.offset < 0 {
		if at.offset, err = u.locate(ctx, c, at); err != nil {
			return err
		}
		at.refused = 0
	}
	for at.offset < u.Size {
		if at.offset, err = u.send(ctx, c, at.offset); err != nil {
			return err
		}
	}
	return nil
}

// repair prepares another attempt: at once if the ticket was renewed, after a pause if it returns
// an errdefs.ErrUnavailable, and otherwise never.
func (u *Upload) repair(ctx context.Context, at *position, err error) (renewed bool, _ error) {
	at.offset = -1
	switch {
	case errdefs.IsUnavailable(err):
		at.lost++
		return false, err
	case errdefs.IsDataLoss(err): // damaged during the transfer: try once more
		at.repairs++
	case errdefs.IsNotFound(err) && u.Location != "": // the server has deleted it
		u.Location = ""
		at.repairs++
	case errdefs.IsAborted(err) && u.Location != "": // the server has another offset
		at.repairs++
	case u.Renew != nil && at.refused < maxRepairs &&
		(errdefs.IsAborted(err) || errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err)):
		at.refused++ // the ticket is used up or has expired
		target, err := u.Renew(ctx)
		if err != nil {
			return false, err
		}
		u.Target = target
		return true, nil
	default:
		return false, err
	}
	if at.repairs > maxRepairs {
		return false, err
	}
	return false, again{err}
}

// elsewhere switches to another proxy if the manager names one now.
func (u *Upload) elsewhere(ctx context.Context) error {
	if u.Renew == nil {
		return nil
	}
	target, err := u.Renew(ctx)
	if err == nil && target.URL != u.Target.URL {
		u.Target = target
	}
	return err
}

// address returns the address of the unfinished upload at the proxy of the ticket.
func (u *Upload) address() string {
	return strings.TrimSuffix(u.Target.URL, "/") + "/" + path.Base(u.Location)
}

// again is an error after which another attempt can succeed.
type again struct{ error }

func (e again) Unwrap() []error { return []error{errdefs.ErrUnavailable, e.error} }

// locate returns the number of bytes that the server has. It creates the upload if necessary.
func (u *Upload) locate(ctx context.Context, c *Client, at *position) (int64, error) {
	if u.Location != "" {
		resp, err := u.request(ctx, c, http.MethodHead, u.address(), nil, nil, http.StatusOK, http.StatusNoContent)
		if err != nil {
			return -1, err
		}
		offset, err := u.advanced(resp)
		if err != nil || offset < u.Size || u.Location != at.earlier {
			at.earlier = ""
			return offset, err
		}
		u.Location = ""
	}
	header := http.Header{"Upload-Length": {strconv.FormatInt(u.Size, 10)}}
	if sec := u.Modified.Unix(); !u.Modified.IsZero() && sec >= 0 && u.Modified.Year() < 2200 { // the times that the server accepts
		text := fmt.Sprintf("%d.%09d", sec, u.Modified.Nanosecond())
		header.Set("Upload-Metadata", "mtime "+base64.StdEncoding.EncodeToString([]byte(text)))
	}
	resp, err := u.request(ctx, c, http.MethodPost, u.Target.URL, header, nil, http.StatusCreated)
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

// send sends one chunk and returns the new offset.
func (u *Upload) send(ctx context.Context, c *Client, offset int64) (int64, error) {
	chunk := make([]byte, min(chunkBytes, u.Size-offset))
	if _, err := u.Source.ReadAt(chunk, offset); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the file became shorter than %d bytes: %w", u.Size, errdefs.ErrFailedPrecondition)
		}
		return offset, err
	}
	sum := sha256.Sum256(chunk)
	resp, err := u.request(ctx, c, http.MethodPatch, u.address(), http.Header{
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

// resolve returns an absolute address. The given address may lack the server.
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
