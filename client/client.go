// Package client is the Go client of Berth's public API. It sends GraphQL operations over
// HTTP, and uses server-sent events for subscriptions, WebSocket for terminals and ports,
// and tus for uploads.
//
// New returns a client for an access token, or for Login; NewSigned returns one for a keypair. The
// methods of Client cover the whole API; Raw, Subscribe and MakeRequest run operations that a
// program defines. Every refusal of the server is an *Error, which has the class of an error of
// github.com/containerd/errdefs.
//
// The types of objects and inputs are generated from the schema. In inputs, a value that is nil is
// left out of the request, and so is an optional text that is empty.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/signature"
)

//go:generate sh -c "cd .. && go run ./tools/genqlient"

// callTimeout limits one query or mutation whose context has no deadline. The server's own longest
// limit is half of it.
const callTimeout = time.Minute

// maxAnswer limits the size of an answer, which is kept in memory.
const maxAnswer = 64 << 20

// Client talks to one server as one user. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	token     string
	actAs     string
	userAgent string
	http      *http.Client
}

// New returns a client for the server at base, for example https://berth.example.org. With an empty
// token, requests are anonymous.
func New(base, token, userAgent string) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is no server address such as https://berth.example.org: %w", base, errdefs.ErrInvalidArgument)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	transport.MaxIdleConnsPerHost = 16
	return &Client{base: u, token: token, userAgent: userAgent, http: &http.Client{Transport: transport}}, nil
}

// As returns a client that acts as another user, given by e-mail or ID, with exactly that user's
// rights. The server checks that this user may do so.
func (c *Client) As(user string) *Client {
	other := *c
	other.actAs = user
	return &other
}

// Base returns the server's address.
func (c *Client) Base() string { return c.base.String() }

// Request is one GraphQL operation.
type Request struct {
	Query     string `json:"query"`
	Operation string `json:"operationName,omitempty"`
	Variables any    `json:"variables,omitempty"` // a map or a struct
}

// Response is the server's answer to a Request.
type Response struct {
	Data   json.RawMessage `json:"data"`
	Errors []GraphQLError  `json:"errors,omitempty"`
}

// Err returns the first error in the answer, or nil.
func (r *Response) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	return r.Errors[0].err(len(r.Errors) - 1)
}

// Raw runs any query or mutation and returns the answer unchanged.
func (c *Client) Raw(ctx context.Context, r Request) (*Response, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, callTimeout, &Error{Code: codeDeadlineExceeded,
			Message: fmt.Sprintf("no answer from %s within %s", c.base.Host, callTimeout)})
		defer cancel()
	}
	resp, err := c.post(ctx, r, "application/json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, unreachable(c.base, err)
	}
	var out Response
	if err := json.Unmarshal(body, &out); err != nil || (out.Data == nil && out.Errors == nil) {
		return nil, refusal(resp, body)
	}
	for i := range out.Errors {
		if out.Errors[i].Extensions.RequestID == "" {
			out.Errors[i].Extensions.RequestID = resp.Header.Get("X-Request-Id")
		}
	}
	return &out, nil
}

// MakeRequest implements graphql.Client: functions that genqlient generates from a program's
// own operations run with a Client, and their errors are of the type Error too.
func (c *Client) MakeRequest(ctx context.Context, r *graphql.Request, into *graphql.Response) error {
	resp, err := c.Raw(ctx, Request{Query: r.Query, Operation: r.OpName, Variables: r.Variables})
	if err != nil {
		return err
	}
	if err := resp.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(resp.Data, into.Data); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, r Request, accept string) (*http.Response, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	req, err := c.request(ctx, http.MethodPost, "/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	return c.send(req)
}

// request creates a request to a path of the server, with the credentials of the client.
func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	c.authorize(req.Header)
	return req, nil
}

func (c *Client) authorize(h http.Header) {
	h.Set("User-Agent", c.userAgent)
	h.Set("X-Berth-CSRF", "1")
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.actAs != "" {
		h.Set("X-Berth-Act-As", c.actAs)
	}
}

// send returns an error if the server does not respond.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	if ctxErr := req.Context().Err(); ctxErr != nil {
		return nil, context.Cause(req.Context())
	}
	return nil, unreachable(req.URL, err)
}

// refused closes the answer and turns it into an error, unless its status is
// one of ok.
func refused(resp *http.Response, ok ...int) error {
	for _, status := range ok {
		if resp.StatusCode == status {
			return nil
		}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return refusal(resp, body)
}

func unreachable(u *url.URL, err error) error {
	return &Error{Code: codeUnavailable, Message: fmt.Sprintf("cannot reach %s://%s: %v", u.Scheme, u.Host, root(err))}
}

// root removes the outer errors that only repeat addresses and system calls.
func root(err error) error {
	for {
		var (
			request *url.Error
			network *net.OpError
			system  *os.SyscallError
		)
		switch {
		case errors.As(err, &request):
			err = request.Err
		case errors.As(err, &network):
			err = network.Err
		case errors.As(err, &system):
			err = system.Err
		default:
			return err
		}
	}
}

func isJSON(resp *http.Response) bool {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

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
