package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
)

// Limits of what a registry may answer.
const (
	maxRedirects = 5
	maxToken     = 1 << 20
	maxListing   = 16 << 20
	maxManifest  = 4 << 20 // of the OCI distribution specification
	maxConfig    = 8 << 20
	// defaultPause is the wait after 429 without Retry-After, maxPause the longest that counts.
	defaultPause, maxPause = 2 * time.Second, 15 * time.Minute
)

const digestHeader = "Docker-Content-Digest"

// answer is a response that was read.
type answer struct {
	header http.Header
	body   []byte
	url    *url.URL // that the registry answered, before redirects
}

// request is what a registry is asked for. path can have a query.
type request struct {
	method, path string
	scope        string // of the token
	header       http.Header
	body         []byte
}

// get sends a request without a body. A body of the answer that is longer than limit is an error.
func (c *Client) get(ctx context.Context, method, path, scope, accept string, limit int64) (*answer, error) {
	header := http.Header{}
	if accept != "" {
		header.Set("Accept", accept)
	}
	return c.do(ctx, request{method: method, path: path, scope: scope, header: header}, limit)
}

// do sends a request to the registry, logs in if it asks for that, and follows redirects.
func (c *Client) do(ctx context.Context, q request, limit int64) (*answer, error) {
	at, err := c.base.Parse(q.path)
	if err != nil {
		return nil, fmt.Errorf("path %.80q: %w: %w", q.path, errdefs.ErrInvalidArgument, err)
	}
	key, err := c.credential(ctx, q.scope)
	if err != nil {
		return nil, err
	}
	resp, err := c.follow(ctx, q, at, key)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		asked := challenges(resp.Header)
		drain(resp)
		again, err := c.login(ctx, asked, q.scope, key)
		if err != nil {
			return nil, err
		}
		if resp, err = c.follow(ctx, q, at, again); err != nil {
			return nil, err
		}
	}
	defer drain(resp)
	if err := c.refusal(resp); err != nil {
		return nil, err
	}
	a := &answer{header: resp.Header, url: at}
	if q.method == http.MethodHead {
		return a, nil
	}
	a.body, err = readAll(resp, limit)
	return a, err
}

// follow sends one request, and follows redirects. The credential goes to the registry only.
func (c *Client) follow(ctx context.Context, q request, at *url.URL, credential string) (*http.Response, error) {
	for range maxRedirects + 1 {
		r, err := http.NewRequestWithContext(ctx, q.method, at.String(), bytes.NewReader(q.body))
		if err != nil {
			return nil, fmt.Errorf("request %s: %w: %w", at.Redacted(), errdefs.ErrInvalidArgument, err)
		}
		maps.Copy(r.Header, q.header)
		r.Header.Set("User-Agent", "berth")
		if credential != "" && c.home(at) {
			r.Header.Set("Authorization", credential)
		}
		resp, err := c.send(r)
		if err != nil {
			return nil, err
		}
		to := resp.Header.Get("Location")
		if resp.StatusCode < 300 || resp.StatusCode > 399 || to == "" {
			return resp, nil
		}
		drain(resp)
		next, err := at.Parse(to)
		if err != nil {
			return nil, fmt.Errorf("the registry redirects to an invalid address: %w: %w", errdefs.ErrInvalidArgument, err)
		}
		if err := c.mayFollow(next); err != nil {
			return nil, err
		}
		at = next
	}
	return nil, fmt.Errorf("the registry redirects more than %d times: %w", maxRedirects, errdefs.ErrInvalidArgument)
}

// home reports whether a URL is of the registry itself: scheme, host and port.
func (c *Client) home(u *url.URL) bool { return u.Scheme == c.base.Scheme && u.Host == c.base.Host }

// mayFollow checks the target of a redirect. Its address is checked when it is dialled.
func (c *Client) mayFollow(to *url.URL) error {
	switch {
	case to.User != nil || to.Hostname() == "":
		return fmt.Errorf("the registry redirects to an address with a user name or without a host: %w", errdefs.ErrInvalidArgument)
	case to.Scheme == "https", to.Scheme == "http" && c.reg.PlainHTTP:
		return nil
	}
	return fmt.Errorf("the registry redirects from https to %s: %w", to.Scheme, errdefs.ErrInvalidArgument)
}

func (c *Client) send(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	resp, err := c.http.Do(r)
	if err == nil {
		return resp, nil
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which can have a signature
	}
	if errdefs.IsInvalidArgument(err) {
		return nil, fmt.Errorf("connect to %s: %w", r.URL.Host, err)
	}
	return nil, fmt.Errorf("connect to %s: %w: %w", r.URL.Host, errdefs.ErrUnavailable, err)
}

// refusal turns a status into an error of its class.
func (c *Client) refusal(resp *http.Response) error {
	var class error = errdefs.ErrUnavailable
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests,
		code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return &Busy{retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	case code == http.StatusNotFound:
		class = errdefs.ErrNotFound
	case code == http.StatusUnauthorized:
		class = errdefs.ErrUnauthenticated
	case code == http.StatusForbidden:
		class = errdefs.ErrPermissionDenied
	case code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		class = errdefs.ErrNotImplemented
	case code >= 300 && code < 400:
		class = errdefs.ErrInvalidArgument
	}
	return fmt.Errorf("the registry answers %s: %w", resp.Status, class)
}

// retryAfter reads seconds or a date.
func retryAfter(s string, now time.Time) time.Duration {
	d := defaultPause
	if n, err := strconv.Atoi(s); err == nil {
		d = time.Duration(min(n, int(maxPause/time.Second))) * time.Second
	} else if at, err := http.ParseTime(s); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 100*time.Millisecond), maxPause)
}

// readAll reads a body of at most limit bytes.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("the registry sends %d bytes, more than %d: %w", resp.ContentLength, limit, errdefs.ErrInvalidArgument)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the registry: %w: %w", errdefs.ErrUnavailable, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("the registry sends more than %d bytes: %w", limit, errdefs.ErrInvalidArgument)
	}
	return b, nil
}

// drain closes a body so that the connection can be used again, unless the rest is long.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}
