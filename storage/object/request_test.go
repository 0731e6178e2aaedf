package object

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/storage/storagepb"
)

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		is     func(error) bool
		passes bool
	}{
		"busy":                  {http.StatusServiceUnavailable, "<Error><Code>SlowDown</Code></Error>", errdefs.IsUnavailable, true},
		"too many":              {http.StatusTooManyRequests, "", errdefs.IsUnavailable, true},
		"slow body":             {http.StatusBadRequest, "<Error><Code>RequestTimeout</Code></Error>", errdefs.IsUnavailable, true},
		"gone":                  {http.StatusNotFound, "<Error><Code>NoSuchKey</Code></Error>", errdefs.IsNotFound, false},
		"upload does not exist": {http.StatusNotFound, "<Error><Code>NoSuchUpload</Code></Error>", errdefs.IsAborted, false},
		"denied":                {http.StatusForbidden, "<Error><Code>AccessDenied</Code></Error>", errdefs.IsPermissionDenied, false},
		"another object":        {http.StatusPreconditionFailed, "", errdefs.IsFailedPrecondition, false},
		"moved elsewhere":       {http.StatusTemporaryRedirect, "", errdefs.IsInvalidArgument, false},
		"damaged":               {http.StatusBadRequest, "<Error><Code>BadDigest</Code></Error>", errdefs.IsInvalidArgument, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://169.254.169.254/")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			r, err := request(t.Context(), http.MethodGet, &storagepb.SignedRequest{Url: s.URL + "/?X-Amz-Signature=secret"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			_, err = do(client, r, http.StatusOK)
			var p *passing
			if !c.is(err) || errors.As(err, &p) != c.passes || p != nil && c.status >= 429 && p.after != 7*time.Second {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the address shows in %q", err)
			}
		})
	}
}

func TestAddressIsNotTold(t *testing.T) {
	r, err := request(t.Context(), http.MethodGet, &storagepb.SignedRequest{Url: "http://127.0.0.1:1/?X-Amz-Signature=secret"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = do(http.DefaultClient, r, http.StatusOK)
	_, bad := request(t.Context(), http.MethodGet, &storagepb.SignedRequest{Url: "http://[secret"}, nil)
	for _, err := range []error{err, bad} {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// A proxy checks addresses itself, regardless of the checks of the manager.
func TestReach(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	for allowed, want := range map[string]bool{"127.0.0.1": true, "192.0.2.1": false} {
		policy, err := egress.Parse([]string{allowed})
		if err != nil {
			t.Fatal(err)
		}
		m := New(nil, policy)
		r, err := request(t.Context(), http.MethodGet, &storagepb.SignedRequest{Url: s.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := do(m.client, r, http.StatusOK)
		if err == nil {
			resp.Body.Close()
		}
		var out *egress.Refused
		if (err == nil) != want || !want && (!errors.As(err, &out) || !errdefs.IsInvalidArgument(err)) {
			t.Errorf("with %s allowed: %v", allowed, err)
		}
	}
}

// A retry that makes progress is repeated without limit. One without progress is repeated a few
// times.
func TestPersist(t *testing.T) {
	tried := 0
	err := persist(t.Context(), func() (bool, error) {
		if tried++; tried == 4 {
			return true, nil
		}
		return true, &passing{error: errors.New("cut")}
	})
	if err != nil || tried != 4 {
		t.Errorf("%v after %d tries", err, tried)
	}
	if err := persist(t.Context(), func() (bool, error) { return false, errdefs.ErrNotFound }); !errdefs.IsNotFound(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	err = persist(ctx, func() (bool, error) {
		cancel(ended)
		return false, &passing{error: errors.New("cut"), after: time.Hour}
	})
	if err == nil {
		t.Error("it continues after its end")
	}
}
