package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/status"
)

const (
	attempts = 5
	// pause is the delay before the second attempt if the product does not specify one. It doubles
	// with each attempt.
	pause = 500 * time.Millisecond
	// longestPause limits one delay. The proxy's timeout is longer.
	longestPause = 15 * time.Second
)

// Do sends a request until it gets a response. It retries if the product is busy, if the session
// has ended, and if no response arrived and a repetition is harmless. A status below 300 or in
// Accept is not an error; all others are returned as an *Error.
func (c *Client) Do(ctx context.Context, q Request) (*Response, error) {
	renewed := false
	for n := 1; ; n++ {
		r, sent, err := c.send(ctx, q)
		if err != nil {
			if e := ended(ctx); e != nil {
				return nil, e
			}
			if _, ok := status.FromError(err); ok || sent == nil {
				return nil, err // the login has failed after its own retries, or the context has ended
			}
			e := c.silence(q, err)
			if n == attempts || !q.harmless() && !unsent(err) {
				return nil, e
			}
			c.base.Add(1) // use the next address, if there are several
			if err := wait(ctx, pause<<(n-1), e); err != nil {
				return nil, err
			}
			continue
		}
		if r.Status < 300 || slices.Contains(q.Accept, r.Status) {
			return r, nil
		}
		if !renewed && !q.Anonymous && c.auth != nil && c.expired(r) && c.auth.Renew(sent) {
			renewed = true
			continue
		}
		e := c.refusal(q, r)
		refused := r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable
		if n == attempts || !e.Busy() || !refused && !q.harmless() {
			return nil, e
		}
		after := e.RetryAfter
		if after == 0 {
			after = pause << (n - 1)
		}
		if err := wait(ctx, after, e); err != nil {
			return nil, err
		}
	}
}

func (c *Client) expired(r *Response) bool {
	if c.Expired != nil {
		return c.Expired(r)
	}
	return r.Status == http.StatusUnauthorized
}

// harmless reports whether a request can be repeated.
func (q Request) harmless() bool {
	switch q.method() {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return q.Again
}

// ended returns the error of an ended context, with its status.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return status.FromContextError(ctx.Err()).Err()
}

// wait sleeps, or returns why if the delay would exceed the context's deadline.
func wait(ctx context.Context, d time.Duration, why *Error) error {
	if end, ok := ctx.Deadline(); d > longestPause || ok && time.Until(end) < d {
		why.RetryAfter = d
		return why
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// unsent reports whether a request certainly did not reach the product.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
