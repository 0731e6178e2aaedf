package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/seal"
)

const (
	discoveryLife  = 15 * time.Minute
	requestTimeout = 10 * time.Second // for one request to an issuer
	maxAnswer      = 1 << 20
)

// algorithms are signature algorithms for which a secret cannot be mistaken for a public key.
var algorithms = []string{oidc.RS256, oidc.ES256}

// issuers caches the metadata of issuers.
type issuers struct {
	client *http.Client

	mu    sync.Mutex
	known map[string]discovered
}

type discovered struct {
	provider *oidc.Provider
	at       time.Time
}

func newIssuers() *issuers {
	return &issuers{known: map[string]discovered{}, client: &http.Client{
		Timeout:   requestTimeout,
		Transport: bounded{egress.Named()},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the issuer redirects to another address")
		},
	}}
}

// bounded limits the size of answers.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// context makes the libraries use our HTTP client.
func (i *issuers) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, i.client)
}

// get returns the metadata of an issuer. An issuer that does not answer does not block
// requests for others.
func (i *issuers) get(ctx context.Context, issuer string) (*oidc.Provider, error) {
	i.mu.Lock()
	d, ok := i.known[issuer]
	i.mu.Unlock()
	if ok && time.Since(d.at) < discoveryLife {
		return d.provider, nil
	}
	p, err := oidc.NewProvider(i.context(ctx), issuer)
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", issuer, err)
	}
	var also struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&also); err != nil {
		return nil, fmt.Errorf("discover %s: %w", issuer, err)
	}
	for _, text := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL, also.Keys} {
		if u, err := url.Parse(text); err != nil || u.Host == "" || !safe(u) {
			return nil, fmt.Errorf("discover %s: the endpoint %q is not https", issuer, text)
		}
	}
	i.mu.Lock()
	i.known[issuer] = discovered{p, time.Now()}
	i.mu.Unlock()
	return p, nil
}

// oauth returns the OAuth client for a provider.
func (s *Service) oauth(r *http.Request, p *ent.IdentityProvider, at *oidc.Provider) (*oauth2.Config, error) {
	secret, err := s.keys.Open(seal.ProviderSecret, p.ClientSecretSealed)
	if err != nil {
		return nil, fmt.Errorf("open client secret: %w", err)
	}
	scopes := append([]string{oidc.ScopeOpenID}, p.Scopes...)
	slices.Sort(scopes[1:])
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: string(secret), Endpoint: at.Endpoint(), Scopes: slices.Compact(scopes),
		RedirectURL: s.auth.PublicURL(r) + "/auth/oidc/" + url.PathEscape(p.Name) + "/callback",
	}, nil
}

// claims are the claims of an ID token. EmailVerified must be the JSON boolean true.
type claims struct {
	Subject       string `json:"sub"`
	Party         string `json:"azp"`
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"`
	Name          string `json:"name"`
}

// verify checks an ID token: signature, issuer, audience, time and nonce.
func (i *issuers) verify(ctx context.Context, p *ent.IdentityProvider, at *oidc.Provider, raw, nonce string) (c claims, err error) {
	verifier := at.VerifierContext(i.context(ctx), &oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: algorithms})
	token, err := verifier.Verify(i.context(ctx), raw)
	if err != nil {
		return c, err
	}
	if token.Nonce != nonce {
		return c, errors.New("the nonce is not ours")
	}
	if err := token.Claims(&c); err != nil {
		return c, err
	}
	if c.Subject == "" || c.Party != "" && c.Party != p.ClientID || len(token.Audience) > 1 && c.Party == "" {
		return c, errors.New("the token is not for us")
	}
	return c, nil
}
