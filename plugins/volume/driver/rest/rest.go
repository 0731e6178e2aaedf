// Package rest is an HTTP client for the management APIs of storage products. It handles logins,
// retries when a session has expired or the product is busy, pagination, and waiting for jobs. A
// vendor's plugin only defines the requests. Credentials never appear in an error.
package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

const (
	maxBody     = 16 << 20 // of a response
	connections = 8        // to one address
)

// Options are the options of every product with an HTTP API. A vendor's options embed them.
type Options struct {
	URL         string        `json:"url" required:"true" pattern:"^https://[^/?#]+" about:"the address of the product's management, https://host[:port]"`
	MoreURLs    []string      `json:"more_urls" pattern:"^https://[^/?#]+" about:"further addresses of the same product, tried when the first does not answer"`
	CAFile      string        `json:"ca_file" pattern:"^/" about:"a PEM file with the authority that signed the product's certificate; the system's by default"`
	Fingerprint string        `json:"fingerprint" pattern:"^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$" about:"the SHA-256 of the product's certificate, in place of an authority"`
	Timeout     time.Duration `json:"timeout" min:"1" max:"600" about:"time limit of one request"`
}

// Defaults returns the default Options.
func Defaults() Options { return Options{Timeout: 30 * time.Second} }

// Client is a client of one product. Create it with New; its fields must be set before it is used.
type Client struct {
	// Explain finds a product's code and message in an error response. The default searches the
	// usual places.
	Explain func(*Response) (code, message string)
	// Expired reports whether a response means that the session has expired. The default is status
	// 401.
	Expired func(*Response) bool

	auth  Auth
	http  *http.Client
	bases []*url.URL
	base  atomic.Int32 // the index of the address that responds

	hidden driver.Hidden
}

// New returns a client and sends nothing. Without auth it sends no credentials.
func New(o Options, auth Auth) (*Client, error) {
	c := &Client{auth: auth}
	for _, text := range append([]string{o.URL}, o.MoreURLs...) {
		u, err := url.Parse(strings.TrimRight(text, "/"))
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return nil, fmt.Errorf("url: must be https://host[:port], without a password or a query")
		}
		c.bases = append(c.bases, u)
	}
	settings, err := o.tls()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: settings, MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	}
	c.http = &http.Client{
		Transport: transport, Timeout: o.Timeout,
		// Redirects are not followed, so that credentials are sent only to the address that the
		// operator configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func (o Options) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		raw, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("ca_file: %s has no certificate", o.CAFile)
		}
	}
	if o.Fingerprint != "" {
		want, err := hex.DecodeString(strings.ReplaceAll(o.Fingerprint, ":", ""))
		if err != nil || len(want) != sha256.Size {
			return nil, errors.New("fingerprint: must be a SHA-256 in hexadecimal")
		}
		t.InsecureSkipVerify = true // the certificate itself is compared, which is stricter
		t.VerifyConnection = func(s tls.ConnectionState) error {
			if got := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(got[:], want) {
				return fmt.Errorf("the product's certificate has the fingerprint %x", got)
			}
			return nil
		}
	}
	return t, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one request.
type Request struct {
	Method string // empty = GET
	Path   string // below the address, escaped: "/api/cluster/jobs/1"
	Query  url.Values
	Header http.Header
	Body   any // nil, url.Values for a form, anything else as JSON
	// Again means that the request can be repeated although its method is POST or PATCH: it is sent
	// again if the response was lost.
	Again bool
	// Anonymous requests have no credentials, such as the login itself.
	Anonymous bool
	// Accept are statuses from 300 on that are not errors for this request.
	Accept []int
}

// Response is a response with its complete body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the JSON body.
func (r *Response) Decode(into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("the product's answer does not have the expected form: %w", err)
	}
	return nil
}

// Cookies returns the cookies that the response sets.
func (r *Response) Cookies() []*http.Cookie {
	return (&http.Response{Header: r.Header}).Cookies()
}

// Get sends a GET request and decodes the JSON response.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	return c.JSON(ctx, Request{Path: path, Query: query}, into)
}

// JSON sends a request and decodes the JSON response; into can be nil.
func (c *Client) JSON(ctx context.Context, q Request, into any) error {
	r, err := c.Do(ctx, q)
	if err != nil || into == nil {
		return err
	}
	return r.Decode(into)
}

// Link returns the request for a link in a response, which must be below the product's address.
func (c *Client) Link(href string) (Request, error) {
	base := c.at()
	u, err := base.Parse(href)
	if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
		return Request{}, errors.New("a link in the product's answer refers to another address")
	}
	return Request{Path: strings.TrimPrefix(u.EscapedPath(), base.EscapedPath()), Query: u.Query()}, nil
}

func (c *Client) at() *url.URL { return c.bases[int(c.base.Load())%len(c.bases)] }

// send makes one attempt.
func (c *Client) send(ctx context.Context, q Request) (*Response, *http.Request, error) {
	body, kind, err := encode(q.Body)
	if err != nil {
		return nil, nil, status.Errorf(codes.Internal, "%s %s: %v", q.method(), q.Path, err)
	}
	target := c.at().String() + q.Path
	if len(q.Query) > 0 {
		target += "?" + q.Query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method(), target, body)
	if err != nil {
		return nil, nil, status.Errorf(codes.Internal, "%s %s: the request is invalid", q.method(), q.Path)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "berth")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for k, v := range q.Header {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	if c.auth != nil && !q.Anonymous {
		if r, err = c.auth.Apply(c, r); err != nil {
			return nil, r, err
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, r, err
	}
	defer answer.Body.Close()
	out := &Response{Status: answer.StatusCode, Header: answer.Header}
	if out.Body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody+1)); err != nil {
		return nil, r, err
	}
	if len(out.Body) > maxBody {
		return nil, r, status.Errorf(codes.Internal, "%s %s: the answer is longer than %d bytes", q.method(), q.Path, maxBody)
	}
	return out, r, nil
}

func (q Request) method() string {
	if q.Method == "" {
		return http.MethodGet
	}
	return q.Method
}

func encode(body any) (io.Reader, string, error) {
	switch b := body.(type) {
	case nil:
		return nil, "", nil
	case url.Values:
		return strings.NewReader(b.Encode()), "application/x-www-form-urlencoded", nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, "", err
	}
	return bytes.NewReader(raw), "application/json", nil
}

// Secret reads a secret and removes it from all later errors.
func (c *Client) Secret(s driver.Secret) (string, error) {
	text, err := s.Read()
	if err != nil { // not NOT_FOUND, which means a missing scope
		return "", status.Error(codes.Unauthenticated, err.Error())
	}
	c.Hide(text)
	return text, nil
}

// Hide removes texts, such as tokens, from all later errors.
func (c *Client) Hide(texts ...string) { c.hidden.Add(texts...) }
