package lazy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/pkg/reference"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime/access"
)

// source reads parts of layers from the registry.
type source struct {
	host       docker.RegistryHost
	repository string
	timeout    time.Duration

	fetched atomic.Int64
	waiting atomic.Int32
	refused atomic.Int64

	mu      sync.Mutex
	failing error     // the latest error, nil after a success
	since   time.Time // of the first error of those
	last    time.Time // when a read last ended
}

func newSource(r Request) (*source, error) {
	ref, err := reference.Parse(r.Reference)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w: %w", r.Reference, err, errdefs.ErrInvalidArgument)
	}
	hosts, err := access.Registry{
		PlainHTTP: r.PlainHTTP, Username: r.Username, Password: r.Password, Proxy: r.Proxy, Certificates: r.Certificates,
	}.Hosts()
	if err != nil {
		return nil, err
	}
	list, err := hosts(ref.Hostname())
	if err != nil || len(list) == 0 {
		return nil, fmt.Errorf("registry %s: %w", ref.Hostname(), err)
	}
	s := &source{host: list[0], repository: strings.TrimPrefix(ref.Locator, ref.Hostname()+"/"), timeout: r.Timeout}
	if s.timeout == 0 {
		s.timeout = DefaultTimeout
	}
	return s, nil
}

// read returns bytes of a layer. It retries until the timeout. If the registry has been failing for longer
// than that, it tries once, so that programs do not wait for the timeout with every file.
func (s *source) read(ctx context.Context, b *blob, at, n int64) ([]byte, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		data, err := s.once(ctx, b.layer.Digest, at, n)
		if s.note(err) {
			if err == nil {
				s.fetched.Add(n)
			}
			return data, err
		}
		if final(err) || ctx.Err() != nil {
			return nil, err
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return nil, err
		}
		if b.local() != nil {
			return nil, err // it arrived meanwhile, and the caller looks there
		}
	}
}

// note remembers an outcome, and reports whether the read ends with it.
func (s *source) note(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if err == nil {
		s.failing, s.since = nil, time.Time{}
		return true
	}
	if s.failing == nil {
		s.since = s.last
	}
	s.failing = err
	return s.last.Sub(s.since) > s.timeout
}

// notable is the time for which a registry must fail until people are notified.
const notable = 3 * time.Second

// state returns why reads fail, and how long ago a read last ended.
func (s *source) state() (failing string, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	serious := final(s.failing) || errdefs.IsDataLoss(s.failing) || time.Since(s.since) > min(s.timeout/2, notable)
	if s.failing != nil && serious {
		failing = fmt.Sprintf("the registry %s has not sent files of the image since %s UTC: %v", s.host.Host, s.since.UTC().Format(time.TimeOnly), s.failing)
	}
	return failing, time.Since(s.last)
}

// once sends one request, and a second one after a login.
func (s *source) once(ctx context.Context, digest string, at, n int64) ([]byte, error) {
	ctx = docker.WithScope(ctx, "repository:"+s.repository+":pull")
	for try := 0; ; try++ {
		res, err := s.send(ctx, digest, at, n)
		if err != nil {
			return nil, err
		}
		if res.StatusCode == http.StatusUnauthorized && try == 0 && s.host.Authorizer != nil {
			res.Body.Close()
			if err := s.host.Authorizer.AddResponses(ctx, []*http.Response{res}); err != nil {
				return nil, fmt.Errorf("log in: %w", err)
			}
			continue
		}
		defer res.Body.Close()
		if err := status(res, at, n); err != nil {
			return nil, err
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(res.Body, data); err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		return data, nil
	}
}

func (s *source) send(ctx context.Context, digest string, at, n int64) (*http.Response, error) {
	address := fmt.Sprintf("%s://%s%s/%s/blobs/%s", s.host.Scheme, s.host.Host, s.host.Path, s.repository, digest)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range s.host.Header {
		req.Header[name] = values
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+n-1))
	if s.host.Authorizer != nil {
		if err := s.host.Authorizer.Authorize(ctx, req); err != nil {
			return nil, fmt.Errorf("log in: %w", err)
		}
	}
	res, err := s.host.Client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) { // people know the registry, not its paths
		err = failed.Err
	}
	return res, err
}

// status returns an error unless the answer has exactly the bytes.
func status(res *http.Response, at, n int64) error {
	switch res.StatusCode {
	case http.StatusPartialContent:
		if want := fmt.Sprintf("bytes %d-%d/", at, at+n-1); !strings.HasPrefix(res.Header.Get("Content-Range"), want) {
			return fmt.Errorf("the registry sent %q instead of %q: %w", res.Header.Get("Content-Range"), want, errdefs.ErrInvalidArgument)
		}
		return nil
	case http.StatusOK:
		return fmt.Errorf("the registry does not send parts of layers: %w", errdefs.ErrInvalidArgument)
	case http.StatusNotFound:
		return fmt.Errorf("the registry no longer has the layer: %w", errdefs.ErrNotFound)
	case http.StatusUnauthorized:
		return fmt.Errorf("the registry refused the login: %w", errdefs.ErrUnauthenticated)
	case http.StatusForbidden:
		return fmt.Errorf("the registry refused access: %w", errdefs.ErrPermissionDenied)
	}
	return fmt.Errorf("the registry answered %s: %w", res.Status, errdefs.ErrUnavailable)
}
