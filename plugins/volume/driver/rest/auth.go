package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// Auth authenticates requests to a product.
type Auth interface {
	// Apply adds credentials to a request. It can obtain them from the product within the request's
	// context.
	Apply(c *Client, r *http.Request) (*http.Request, error)
	// Renew is called when the product refused the credentials of a request. It reports whether
	// another Apply may succeed.
	Renew(r *http.Request) bool
}

// Basic sends a name and a password with every request.
type Basic struct {
	User     string
	Password driver.Secret
}

// Apply implements Auth.
func (b Basic) Apply(c *Client, r *http.Request) (*http.Request, error) {
	password, err := c.Secret(b.Password)
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth(b.User, password)
	c.hideHeader(r.Header.Values("Authorization"))
	return r, nil
}

// Renew implements Auth.
func (Basic) Renew(*http.Request) bool { return false }

// Token sends a token that does not expire in a header.
type Token struct {
	Header string // empty = "Authorization"
	Prefix string // "Bearer ", "Api-Token "
	Secret driver.Secret
}

// Apply implements Auth.
func (t Token) Apply(c *Client, r *http.Request) (*http.Request, error) {
	token, err := c.Secret(t.Secret)
	if err != nil {
		return nil, err
	}
	header := t.Header
	if header == "" {
		header = "Authorization"
	}
	r.Header.Set(header, t.Prefix+token)
	return r, nil
}

// Renew implements Auth.
func (Token) Renew(*http.Request) bool { return false }

// Session is the result of a login.
type Session struct {
	Header  http.Header // for every request: a bearer token, a CSRF token
	Cookies []*http.Cookie
	Expires time.Time // zero = unknown
	Refresh string    // for the next login

	began time.Time
}

// life returns the promised duration of a session.
func (s *Session) life() time.Duration { return s.Expires.Sub(s.began) }

// early is how long before its end a session is renewed, because a request can take long.
const early = 30 * time.Second

// Login is an Auth with sessions, which it renews when they end. It supports bearer tokens, cookies
// with or without a CSRF header, and the exchange of a long-lived token for a short-lived one.
// Create it with NewLogin.
type Login struct {
	do func(ctx context.Context, c *Client, old *Session) (*Session, error)

	busy chan struct{} // serializes logins
	mu   sync.Mutex
	now  *Session
	old  *Session // has ended, but may have a Refresh
}

// NewLogin returns an Auth that logs in by calling do, which must use Anonymous requests, and
// secrets from Client.Secret. old is nil, or the session that has ended, for products with refresh
// tokens. If the refresh fails, do is called again with nil.
func NewLogin(do func(ctx context.Context, c *Client, old *Session) (*Session, error)) *Login {
	return &Login{do: do, busy: make(chan struct{}, 1)}
}

type sessionKey struct{}

// Apply implements Auth.
func (l *Login) Apply(c *Client, r *http.Request) (*http.Request, error) {
	s, err := l.session(r.Context(), c)
	if err != nil {
		return r, err
	}
	for k, v := range s.Header {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	for _, k := range s.Cookies {
		r.AddCookie(&http.Cookie{Name: k.Name, Value: k.Value})
	}
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)), nil
}

// Renew implements Auth.
func (l *Login) Renew(r *http.Request) bool {
	s, _ := r.Context().Value(sessionKey{}).(*Session)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s != nil && l.now == s { // another request may have logged in since
		l.now, l.old = nil, s
	}
	return s != nil
}

func (l *Login) current() (now, old *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil && !l.now.Expires.IsZero() && time.Until(l.now.Expires) < min(early, l.now.life()/2) {
		l.now, l.old = nil, l.now
	}
	return l.now, l.old
}

func (l *Login) session(ctx context.Context, c *Client) (*Session, error) {
	if s, _ := l.current(); s != nil {
		return s, nil
	}
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	s, old := l.current()
	if s != nil {
		return s, nil
	}
	s, err := l.do(ctx, c, old)
	if old != nil && err != nil && ctx.Err() == nil && !busy(err) {
		s, err = l.do(ctx, c, nil)
	}
	var refused *Error
	if errors.As(err, &refused) && refused.Status >= 400 && !refused.Busy() {
		refused.As = codes.Unauthenticated
	}
	if err != nil {
		return nil, driver.Error("log in", err)
	}
	s.began = time.Now()
	for _, values := range s.Header {
		c.hideHeader(values)
	}
	for _, k := range s.Cookies {
		c.Hide(k.Value)
	}
	c.Hide(s.Refresh)
	l.mu.Lock()
	l.now, l.old = s, nil
	l.mu.Unlock()
	return s, nil
}

// hideHeader also hides the part after "Bearer".
func (c *Client) hideHeader(values []string) {
	for _, v := range values {
		c.Hide(v, v[strings.LastIndexByte(v, ' ')+1:])
	}
}

func busy(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Busy()
}
