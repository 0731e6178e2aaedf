// Package remote reads OCI registries: their repositories, their tags, and the properties of
// images. The manager imports it to register images. A registry is not trusted: what it answers is
// checked for its size and its digest, and credentials go to no host that it names, except a token
// server of its own site.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/report"
)

// Registry is the connection data of a registry.
type Registry struct {
	Host               string // host and port, without a scheme
	PlainHTTP          bool
	Username, Password string  // both empty: anonymous
	Proxy              string  // URL; empty: the proxy of the environment
	Logins             *Logins // of registries at Amazon, shared by clients; nil: each client has its own
	CA                 string  // certificates in PEM that are trusted in addition to those of the machine
}

// Image is the image of a tag for one architecture.
type Image struct {
	Name         string // repository:tag
	Architecture string // as Go calls it: amd64, arm64
	Digest       string // of this architecture's manifest
	Size         int64  // bytes to download
	Labels       map[string]string
	Environment  []string       // NAME=VALUE
	Layers       []report.Layer // the lowest first
	SignedBy     string         // fingerprint of a key, set by those who verify signatures
}

// Content is what a tag stands for: the digest of its manifest or index, and one Image for each
// Linux architecture.
type Content struct {
	Digest string
	Images []Image
}

// Client reads one registry. It can be used by several goroutines.
type Client struct {
	reg  Registry
	base *url.URL // without a path
	http *http.Client
	way  *way // how the registry is reached
	auth auth

	requests atomic.Int64
}

// auth is what a Client knows about the login of its registry.
type auth struct {
	mu     sync.Mutex
	last   challenge
	tokens map[string]token // by scope
}

// headerTimeout limits the wait for the beginning of an answer.
const headerTimeout = 30 * time.Second

// dockerHub is the name of Docker Hub in references; its API is at hubServer.
const dockerHub, hubServer = "docker.io", "registry-1.docker.io"

// Open returns a client, without contacting the registry.
func Open(r Registry) (*Client, error) {
	base := &url.URL{Scheme: "https", Host: r.Host}
	if r.PlainHTTP {
		base.Scheme = "http"
	}
	if r.Host == dockerHub {
		base.Host = hubServer
	}
	if u, err := url.Parse(base.String()); err != nil || u.Hostname() == "" || u.Host != base.Host {
		return nil, fmt.Errorf("registry %q is not a host and port: %w", r.Host, errdefs.ErrInvalidArgument)
	}
	c := &Client{reg: r, base: base, auth: auth{tokens: map[string]token{}}, way: &way{host: base.Hostname()}}
	if c.reg.Logins == nil {
		c.reg.Logins = NewLogins()
	}
	if r.Proxy != "" {
		u, err := ProxyURL(r.Proxy)
		if err != nil {
			return nil, err
		}
		c.way.proxy = u
	}
	t := c.way.transport()
	if r.CA != "" {
		pool, err := Certificates(r.CA)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	c.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Requests returns the number of requests that were sent, those to token servers included.
func (c *Client) Requests() int64 { return c.requests.Load() }

// ProxyURL parses the URL of a proxy. Credentials in it are refused, because it is not a secret.
func ProxyURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("proxy %q is not a URL such as http://proxy.example:3128: %w", s, errdefs.ErrInvalidArgument)
	case u.User != nil:
		return nil, fmt.Errorf("the URL of a proxy cannot have a user name or a password: %w", errdefs.ErrInvalidArgument)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return nil, fmt.Errorf("proxy %q is none of http, https and socks5: %w", s, errdefs.ErrInvalidArgument)
	}
	return u, nil
}

// Certificates returns the certificates of the machine and those of a bundle in PEM.
func Certificates(bundle string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(bundle)) {
		return nil, fmt.Errorf("the certificates are not in PEM: %w", errdefs.ErrInvalidArgument)
	}
	return pool, nil
}

// Ping checks that the registry answers as one, and logs in.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.get(ctx, http.MethodGet, "/v2/", "", "", maxToken)
	if err != nil {
		return fmt.Errorf("reach registry %s: %w", c.reg.Host, err)
	}
	return nil
}

// Anonymous reports whether the client has no credentials.
func (c *Client) Anonymous() bool { return c.reg.Username == "" && c.reg.Password == "" }

// Asked returns the kind of login that the registry has asked for: "", Basic or Bearer.
func (c *Client) Asked() string {
	c.auth.mu.Lock()
	defer c.auth.mu.Unlock()
	return c.auth.last.scheme
}

// Digest asks for the digest of a tag with one HEAD request. It is "" if the registry does not
// tell it.
func (c *Client) Digest(ctx context.Context, image string) (string, error) {
	ref, err := parse(image)
	if err != nil {
		return "", err
	}
	a, err := c.get(ctx, http.MethodHead, ref.manifest(), pull(ref.path), acceptManifests, 0)
	if err != nil {
		return "", fmt.Errorf("ask for image %s: %w", image, err)
	}
	if d := a.header.Get(digestHeader); digestRule.MatchString(d) {
		return d, nil
	}
	return "", nil
}

func pull(repository string) string { return "repository:" + repository + ":pull" }

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
