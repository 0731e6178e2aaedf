package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/net/publicsuffix"
)

// challenge is the login that a registry asks for with WWW-Authenticate.
type challenge struct {
	scheme                string // Basic or Bearer; "": none that is known
	realm, service, scope string
}

// token is a bearer token of a scope.
type token struct {
	value string
	until time.Time
}

const (
	basic, bearer = "Basic", "Bearer"
	// tokenLife is that of a token without a time, as the specification says; spare is the time
	// before its end in which a token is not used any more.
	tokenLife, spare = time.Minute, 10 * time.Second
)

// credential returns the value of Authorization for a scope, from what an earlier request has
// learned; "" before the first challenge.
func (c *Client) credential(ctx context.Context, scope string) (string, error) {
	c.auth.mu.Lock()
	how, t := c.auth.last, c.auth.tokens[scope]
	c.auth.mu.Unlock()
	switch {
	case how.scheme == basic && !c.Anonymous():
		return c.basic(ctx)
	case how.scheme == bearer && t.value != "" && time.Now().Before(t.until):
		return bearer + " " + t.value, nil
	case how.scheme == bearer:
		how.scope = ""
		return c.token(ctx, how, scope)
	}
	return "", nil
}

// login answers a challenge. tried is the credential that the registry has just refused.
func (c *Client) login(ctx context.Context, asked challenge, scope, tried string) (string, error) {
	switch asked.scheme {
	case basic:
		if c.Anonymous() {
			return "", fmt.Errorf("the registry requires a user name and a password: %w", errdefs.ErrUnauthenticated)
		}
		c.learn(asked)
		if key, err := c.basic(ctx); err != nil || key != tried {
			return key, err
		}
		return "", fmt.Errorf("the registry refuses the user name and password: %w", errdefs.ErrUnauthenticated)
	case bearer:
		key, err := c.token(ctx, asked, scope)
		if err == nil {
			c.learn(asked)
		}
		return key, err
	}
	return "", fmt.Errorf("the registry asks for a login that is neither Basic nor Bearer: %w", errdefs.ErrUnauthenticated)
}

func (c *Client) learn(asked challenge) {
	c.auth.mu.Lock()
	defer c.auth.mu.Unlock()
	c.auth.last = asked
}

func (c *Client) basic(ctx context.Context) (string, error) {
	username, password, err := c.Login(ctx)
	if err != nil {
		return "", err
	}
	return basic + " " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)), nil
}

// token gets a token from the realm of a challenge. The registry can widen the actions of our scope,
// but cannot ask for another repository.
func (c *Client) token(ctx context.Context, asked challenge, scope string) (string, error) {
	realm, err := c.realm(asked.realm)
	if err != nil {
		return "", err
	}
	wanted := scope
	if own := strings.TrimSuffix(scope, "pull"); own != "" && strings.HasPrefix(asked.scope, own) && !strings.ContainsAny(asked.scope, " ") {
		wanted = asked.scope
	}
	q := realm.Query()
	if asked.service != "" {
		q.Set("service", asked.service)
	}
	if wanted != "" {
		q.Set("scope", wanted)
	}
	realm.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", fmt.Errorf("request token: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	r.Header.Set("User-Agent", "berth")
	if !c.Anonymous() {
		r.SetBasicAuth(c.reg.Username, c.reg.Password)
	}
	resp, err := c.send(r)
	if err != nil {
		return "", fmt.Errorf("get a token: %w", err)
	}
	defer drain(resp)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return "", fmt.Errorf("the token server %s redirects, and credentials are not sent further: %w", realm.Host, errdefs.ErrInvalidArgument)
	}
	if err := c.refusal(resp); err != nil {
		return "", fmt.Errorf("get a token from %s: %w", realm.Host, err)
	}
	return c.keep(resp, scope)
}

// keep stores the token of an answer.
func (c *Client) keep(resp *http.Response, scope string) (string, error) {
	b, err := readAll(resp, maxToken)
	if err != nil {
		return "", err
	}
	var got struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return "", fmt.Errorf("the token server does not answer with JSON: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	if got.Token == "" {
		got.Token = got.AccessToken
	}
	if got.Token == "" || strings.ContainsAny(got.Token, "\r\n") {
		return "", fmt.Errorf("the token server answers without a token: %w", errdefs.ErrInvalidArgument)
	}
	life := tokenLife
	if got.ExpiresIn > 0 {
		life = time.Duration(min(got.ExpiresIn, 24*3600)) * time.Second
	}
	c.auth.mu.Lock()
	defer c.auth.mu.Unlock()
	if len(c.auth.tokens) > 1000 {
		clear(c.auth.tokens)
	}
	c.auth.tokens[scope] = token{got.Token, time.Now().Add(life - min(spare, life/2))}
	return bearer + " " + got.Token, nil
}

// strangers are token servers of well-known registries that are not on their site.
var strangers = map[string]string{
	"nvcr.io": "authn.nvidia.com",
	"lscr.io": "ghcr.io",
}

// realm parses the address of a token server, and checks that credentials can be sent there: https
// on the site of the registry, http only if the registry itself speaks it, on the same host.
func (c *Client) realm(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return nil, fmt.Errorf("the registry names %.80q as its token server, which is not a URL: %w", s, errdefs.ErrInvalidArgument)
	}
	host, own := strings.ToLower(u.Hostname()), strings.ToLower(c.base.Hostname())
	switch u.Scheme {
	case "http":
		if c.reg.PlainHTTP && host == own {
			return u, nil
		}
		return nil, fmt.Errorf("the token server %s of the registry has no https: %w", u.Host, errdefs.ErrInvalidArgument)
	case "https":
		if SameSite(own, host) {
			return u, nil
		}
		return nil, fmt.Errorf("the token server %s is not on the site of the registry %s: %w", u.Host, c.base.Host, errdefs.ErrInvalidArgument)
	}
	return nil, fmt.Errorf("the token server %s of the registry has no https: %w", u.Host, errdefs.ErrInvalidArgument)
}

// SameSite reports whether a token server can get the credentials of a registry. Both are names of hosts without a
// port.
func SameSite(registry, server string) bool {
	own, host := strings.ToLower(registry), strings.ToLower(server)
	return host == own || strangers[own] == host || site(host) != "" && site(host) == site(own)
}

// site returns the domain that one owner has registered: example.org of auth.example.org; "" for an
// address.
func site(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	s, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return ""
	}
	return s
}
