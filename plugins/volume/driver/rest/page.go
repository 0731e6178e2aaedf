package rest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// maxPages limits a list that does not end.
const maxPages = 10_000

// Pages requests a list page by page. next returns the request for the following page, and nil at
// the end.
func Pages[P any](ctx context.Context, c *Client, first Request, next func(page *P, r *Response) (*Request, error)) iter.Seq2[*P, error] {
	return func(yield func(*P, error) bool) {
		q := &first
		for range maxPages {
			r, err := c.Do(ctx, *q)
			page := new(P)
			if err == nil {
				err = r.Decode(page)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			before := q
			if q, err = next(page, r); err == nil && q != nil && reflect.DeepEqual(*q, *before) {
				err = errors.New("the product answers the same page again and again")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if q == nil {
				return
			}
		}
		yield(nil, fmt.Errorf("the list has more than %d pages", maxPages))
	}
}

// All returns the items of all Pages.
func All[P, T any](ctx context.Context, c *Client, first Request, items func(*P) []T, next func(page *P, r *Response) (*Request, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range Pages(ctx, c, first, next) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, t := range items(page) {
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// Poll calls done until it reports true or fails. It waits for jobs that the product has accepted,
// and for changes that become visible with a delay. The delays begin with first, double, and are at
// most a hundred times as long. A busy product does not end it. If the context ends, Poll returns
// DEADLINE_EXCEEDED or CANCELLED, but the product continues the job.
func Poll(ctx context.Context, what string, first time.Duration, done func(context.Context) (bool, error)) error {
	for d := first; ; d = min(2*d, 100*first, longestPause) {
		ok, err := done(ctx)
		switch {
		case ctx.Err() != nil:
			return driver.Error("wait for "+what, ctx.Err())
		case err != nil && !busy(err):
			return driver.Error(what, err)
		case ok && err == nil:
			return nil
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return driver.Error("wait for "+what, ctx.Err())
		}
	}
}
