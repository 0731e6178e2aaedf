package object

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/storage/storagepb"
)

// A request is tried this many times before it moves a byte. The pauses take 0.5 + 1 + 2 + 4 +
// 8 s, plus the time of the requests.
const (
	tries     = 6
	firstWait = 500 * time.Millisecond
	longest   = 30 * time.Second // the longest Retry-After of a storage that is honoured
)

// stallTimeout is how long a transfer can make no progress before its request is cancelled.
const silence = time.Minute

// passing is an error that a retry can resolve.
type passing struct {
	error
	after time.Duration // Retry-After of the storage
}

func (p *passing) Unwrap() []error { return []error{p.error, errdefs.ErrUnavailable} }

// persist repeats try while it fails with an error that a retry can resolve. A call that made
// progress resets the number of attempts.
func persist(ctx context.Context, try func() (further bool, err error)) error {
	wait := firstWait
	for n := 1; ; n++ {
		further, err := try()
		var p *passing
		if err == nil || ctx.Err() != nil || !errors.As(err, &p) {
			return err
		}
		if further {
			n, wait = 1, firstWait
		}
		if n == tries {
			return err
		}
		pause := max(wait/2+rand.N(wait/2+1), min(p.after, longest))
		wait *= 2
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// request creates a signed request.
func request(ctx context.Context, method string, s *storagepb.SignedRequest, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.GetUrl(), body)
	if err != nil {
		return nil, fmt.Errorf("the signed address cannot be read: %w", errdefs.ErrInvalidArgument) // the address is a secret
	}
	for name, value := range s.GetHeaders() {
		r.Header.Set(name, value)
	}
	return r, nil
}

// do sends a request and returns an error for every status that is not expected. The error does not
// contain the address, which is signed.
func do(c *http.Client, r *http.Request, good ...int) (*http.Response, error) {
	resp, err := c.Do(r)
	if err != nil {
		return nil, broken("ask the object storage", err)
	}
	for _, status := range good {
		if resp.StatusCode == status {
			return resp, nil
		}
	}
	defer resp.Body.Close()
	return nil, refused(resp)
}

// broken returns the error of a connection.
func broken(doing string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var out *egress.Refused
	if errors.As(err, &out) {
		return out
	}
	return &passing{error: &plain{doing + ": " + egress.Plain(err), err}}
}

// plain is an error of a connection without the addresses in its text.
type plain struct {
	text  string
	cause error
}

func (p *plain) Error() string { return p.text }
func (p *plain) Unwrap() error { return p.cause }

// refused returns an error that explains an unsuccessful answer.
func refused(resp *http.Response) error {
	var reason struct{ Code, Message string }
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	_ = xml.Unmarshal(raw, &reason) // the body may be empty
	words := resp.Status
	if reason.Code != "" {
		words = reason.Code + " (" + resp.Status + ")"
	}
	err := fmt.Errorf("the object storage answers %s", words)
	class := func(c error) error { return fmt.Errorf("%w: %w", err, c) }
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500 && code != http.StatusNotImplemented,
		reason.Code == "RequestTimeout", reason.Code == "OperationAborted":
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &passing{err, time.Duration(after) * time.Second}
	case reason.Code == "NoSuchUpload":
		return class(errdefs.ErrAborted)
	case code == http.StatusNotFound:
		return class(errdefs.ErrNotFound)
	case code == http.StatusPreconditionFailed:
		return fmt.Errorf("the object has changed since it was listed: %w", errdefs.ErrFailedPrecondition)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return class(errdefs.ErrPermissionDenied)
	case code == http.StatusInsufficientStorage, reason.Code == "QuotaExceeded", reason.Code == "XMinioStorageFull":
		return class(errdefs.ErrFailedPrecondition)
	}
	return class(errdefs.ErrInvalidArgument)
}

// watchdog cancels a request that makes no progress.
type watchdog struct{ *time.Timer }

func guard(cancel context.CancelCauseFunc) watchdog {
	return watchdog{time.AfterFunc(silence, func() {
		cancel(&passing{error: fmt.Errorf("the object storage was silent for %s", silence)})
	})}
}

func (w watchdog) alive() { w.Reset(silence) }
