package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/internal/viewer"
)

// CSRFHeader must be set on every request that changes something and is authenticated by the
// cookie, because pages of other origins cannot set it.
const CSRFHeader = "X-Berth-CSRF"

// Authenticate adds the viewer to the context of every request: the user of a valid cookie,
// token or signature, or an anonymous viewer if there is none. It rejects invalid credentials.
func (s *Service) Authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = s.addressed(r)
		v, err := s.identify(w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(viewer.With(r.Context(), v)))
	})
}

// Knows reports whether a request has the cookie of a valid login.
func (s *Service) Knows(r *http.Request) bool {
	secret := s.cookie(r)
	if secret == "" {
		return false
	}
	_, err := s.login(s.addressed(r).Context(), secret)
	return err == nil
}

// Bearer returns the viewer of an Authorization value, as WebSocket clients send it in their
// first message.
func (s *Service) Bearer(ctx context.Context, authorization string) (*viewer.Viewer, error) {
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(secret, tokenMark) {
		return nil, problem.Unauthenticated(refused)
	}
	c, err := s.token(ctx, secret)
	if err != nil {
		return nil, err
	}
	return c.viewer, nil
}

func (s *Service) identify(w http.ResponseWriter, r *http.Request) (*viewer.Viewer, error) {
	if a := r.Header.Get("Authorization"); a != "" {
		return s.Bearer(r.Context(), a)
	}
	if signature.Signed(r.Header) {
		return s.signed(w, r)
	}
	secret := s.cookie(r)
	if secret == "" {
		return viewer.Anonymous(), nil
	}
	c, err := s.login(r.Context(), secret)
	if err != nil {
		return nil, err
	}
	if err := s.ownPage(r); err != nil {
		return nil, err
	}
	return c.viewer, nil
}

// ownPage rejects requests that a page of another origin could make a browser send with our
// cookie.
func (s *Service) ownPage(r *http.Request) error {
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		if !s.sameOrigin(r) {
			return problem.Forbidden("WebSockets are open only to pages of the same origin")
		}
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
	case r.Header.Get(CSRFHeader) == "":
		return problem.Forbidden("the header %s is missing", CSRFHeader)
	}
	return nil
}

func (s *Service) sameOrigin(r *http.Request) bool {
	scheme := "http"
	if s.overTLS(r) {
		scheme = "https"
	}
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}

// Cookie names. Browsers enforce that a cookie with the prefix of the first is valid only over
// TLS, for this host and all of its paths.
const (
	cookieTLS   = "__Host-berth"
	cookiePlain = "berth"
	deviceTLS   = "__Host-berth-device"
	devicePlain = "berth-device"
)

func (s *Service) cookie(r *http.Request) string { return s.cookieOf(r, cookiePlain, cookieTLS) }

func (s *Service) cookieOf(r *http.Request, plain, tls string) string {
	name := plain
	if s.overTLS(r) {
		name = tls
	}
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie for a number of seconds; a negative number deletes it.
func (s *Service) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	s.setCookieOf(w, r, cookiePlain, cookieTLS, value, seconds)
}

func (s *Service) setCookieOf(w http.ResponseWriter, r *http.Request, plain, tls, value string, seconds int) {
	c := &http.Cookie{
		Name: plain, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if s.overTLS(r) {
		c.Name, c.Secure = tls, true
	}
	http.SetCookie(w, c)
}

// fail answers with err, and deletes an expired cookie.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.refused(r.URL.Path, err)
	if p, _ := problem.From(err); p.Code == problem.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("Accept-Signature", signature.Accept)
		if s.cookie(r) != "" {
			s.setCookie(w, r, "", -1)
		}
	}
	if !problem.WriteHTTP(w, r, err) {
		s.log.ErrorContext(r.Context(), "authenticate", "error", err)
	}
}

// Visitor returns the viewer of an access token that a client sent to a storage proxy, and the
// client's address: peer is the address of its connection, and forwarded the forwarding
// headers of its request.
func (s *Service) Visitor(ctx context.Context, token, peer string, forwarded []string) (*viewer.Viewer, netip.Addr, error) {
	ctx, from := s.visit(ctx, peer, forwarded)
	v, err := s.Bearer(ctx, "Bearer "+token)
	return v, from, err
}

func (s *Service) visit(ctx context.Context, peer string, forwarded []string) (context.Context, netip.Addr) {
	r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
	ctx = s.addressed(r.WithContext(ctx)).Context()
	return ctx, AddressFrom(ctx)
}

// folderKeys and sessionKeys select valid SSH keys. At a storage proxy, a key gives access to folders,
// and at a gateway to sessions.
var (
	folderKeys  = liveKeys(access.TokenFolders)
	sessionKeys = liveKeys(access.TokenSessions)
)

func liveKeys(scope access.TokenScope) string {
	return fmt.Sprintf(live, "created_at", "ssh_keys", "(c.expires_at IS NULL OR c.expires_at > now()) AND ",
		fmt.Sprintf(`'["%s"]'::json`, scope), "NULL::uuid", "''", "c.expires_at", noSecret, noRate)
}

// Keyholder returns the viewer of an SSH key that a client presented to a storage proxy. The
// proxy has verified that the client has the private key.
func (s *Service) Keyholder(ctx context.Context, email string, public []byte, peer string) (*viewer.Viewer, netip.Addr, error) {
	ctx, from := s.visit(ctx, peer, nil)
	key, err := ssh.ParsePublicKey(public)
	if err != nil {
		return nil, from, problem.Unauthenticated(refused)
	}
	found, err := s.find(ctx, folderKeys+"c.fingerprint = $1 AND u.email = lower($2)", ssh.FingerprintSHA256(key), email)
	if err != nil {
		return nil, from, err
	}
	if len(found) == 0 || !fromAllowed(found[0].addresses, from) {
		return nil, from, problem.Unauthenticated(refused)
	}
	return found[0].viewer, from, nil
}

// From returns a context with the address of a client of a server other than that of HTTP, for
// SessionKeyholder, Bearer and Watch.
func (s *Service) From(ctx context.Context, peer string) context.Context {
	ctx, _ = s.visit(ctx, peer, nil)
	return ctx
}

// SessionKeyholder returns the viewer of an SSH key that a client presented to a gateway, which
// verifies that the client has the private key. The e-mail address can be empty. It returns a failed
// precondition if it is, and several users have added the key.
func (s *Service) SessionKeyholder(ctx context.Context, email string, public ssh.PublicKey) (*viewer.Viewer, error) {
	found, err := s.find(ctx, sessionKeys+"c.fingerprint = $1 AND $2 IN ('', u.email) LIMIT 2", ssh.FingerprintSHA256(public), strings.ToLower(email))
	switch {
	case err != nil:
		return nil, err
	case len(found) > 1:
		return nil, problem.Precondition("several users have added this SSH key; log in as EMAIL+SESSION")
	case len(found) == 0 || !fromAllowed(found[0].addresses, AddressFrom(ctx)):
		return nil, problem.Unauthenticated(refused)
	}
	return found[0].viewer, nil
}
