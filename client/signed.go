package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/signature"
)

// NewSigned returns a client that signs its requests with a keypair.
func NewSigned(base, accessKey, secret, userAgent string) (*Client, error) {
	c, err := New(base, "", userAgent)
	if err != nil {
		return nil, err
	}
	c.http.Transport = &signing{next: c.http.Transport, host: c.base.Host, accessKey: accessKey, secret: secret}
	return c, nil
}

// signing signs requests to one host, except for those with credentials of their own, such as
// tickets for files.
type signing struct {
	next                    http.RoundTripper
	host, accessKey, secret string
}

// RoundTrip sends a signed copy of the request.
func (s *signing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != s.host || r.Header.Get("Authorization") != "" {
		return s.next.RoundTrip(r)
	}
	signed := r.Clone(r.Context())
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read the body to sign: %w", err)
		}
		signed.Body = io.NopCloser(bytes.NewReader(body))
		signed.GetBody = nil // a repeated nonce would be refused
	}
	if err := signature.Sign(signed, s.accessKey, s.secret, body, time.Now()); err != nil {
		return nil, err
	}
	return s.next.RoundTrip(signed)
}
