package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/identityprovider"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
)

// mostFailures is the limit per address within the throttle's window.
const mostFailures = 50

// refusal is the reason why a login failed: a code for the page, a cause for the log, and the
// user.
type refusal struct {
	code   string
	cause  error
	person *ent.User
	email  string
	result loginattempt.Result // for the login history; empty: wrong credentials
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: %v", r.code, r.cause) }
func (r *refusal) Unwrap() error { return r.cause }

// The codes for the page.
const (
	codeProvider   = "provider"     // unknown provider
	codeIssuer     = "unavailable"  // the issuer does not answer
	codeState      = "state"        // expired, used twice, or started in another browser
	codeDenied     = "denied"       // the user or the issuer refused
	codeToken      = "token"        // the ID token is not valid
	codeUnverified = "unverified"   // the e-mail address is not verified
	codeEmail      = "email_domain" // the domain of the e-mail address is not allowed
	codeUnknown    = "unknown_user" // unknown user, and the provider does not create users
	codeInactive   = "inactive"
	codeAddress    = "address"
	codeTooMany    = "too_many_logins" // of this user; the oldest must end first
	codeThrottled  = "throttled"
	codeInternal   = "internal"
)

func refuse(code string, format string, args ...any) *refusal {
	return &refusal{code: code, cause: fmt.Errorf(format, args...)}
}

// start redirects the browser to the issuer.
func (s *Service) start(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	p, err := s.provider(r.Context(), r.PathValue("name"))
	if err != nil {
		s.end(w, r, nil, err)
		return
	}
	at, err := s.issuers.get(r.Context(), p.Issuer)
	if err != nil {
		s.end(w, r, p, &refusal{code: codeIssuer, cause: err})
		return
	}
	client, err := s.oauth(r, p, at)
	if err != nil {
		s.end(w, r, p, err)
		return
	}
	st := newState(p.ID, local(r.URL.Query().Get("return")))
	st.Force = r.URL.Query().Get("force") == "true"
	s.keep(w, r, &st)
	to := client.AuthCodeURL(st.State, oidc.Nonce(st.Nonce), oauth2.S256ChallengeOption(st.Verifier))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback handles the browser's return from the issuer.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	st, ok := s.kept(r)
	s.keep(w, r, nil)
	p, err := s.provider(r.Context(), r.PathValue("name"))
	if err != nil {
		s.end(w, r, nil, err)
		return
	}
	forget, wait := s.auth.ThrottleLogin(r, "oidc", mostFailures)
	if wait > 0 {
		s.end(w, r, nil, refuse(codeThrottled, "wait %s", wait))
		return
	}
	if !ok || st.Provider != p.ID || subtle.ConstantTimeCompare([]byte(st.State), []byte(r.URL.Query().Get("state"))) != 1 ||
		!s.used.first(r.Context(), st.State) {
		s.end(w, r, p, refuse(codeState, "the state is not that of this browser, too old or used"))
		return
	}
	u, err := s.identify(r, p, st)
	if err == nil {
		err = s.begin(w, r, u, st.Force)
	}
	if err != nil {
		s.end(w, r, p, err)
		return
	}
	forget(r.Context())
	s.log.InfoContext(r.Context(), "logged in", "user", u.ID, "provider", p.Name, "address", s.auth.ClientAddress(r))
	arrive(w, st.Return)
}

// provider returns an enabled provider.
func (s *Service) provider(ctx context.Context, name string) (*ent.IdentityProvider, error) {
	if naming.Handle("name", name) != nil {
		return nil, refuse(codeProvider, "no provider has this name")
	}
	p, err := s.client.IdentityProvider.Query().
		Where(identityprovider.Name(name), identityprovider.Active(true), identityprovider.HasDomainWith(domain.Active(true))).
		Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, refuse(codeProvider, "no active provider %s", name)
	}
	return p, err
}

// identify redeems the code at the issuer, and returns the user.
func (s *Service) identify(r *http.Request, p *ent.IdentityProvider, st state) (*ent.User, error) {
	q := r.URL.Query()
	if said := q.Get("error"); said != "" {
		return nil, refuse(codeDenied, "the issuer reports %q", said)
	}
	if iss := q.Get("iss"); iss != "" && iss != p.Issuer {
		return nil, refuse(codeToken, "the answer comes from the issuer %q", iss)
	}
	at, err := s.issuers.get(r.Context(), p.Issuer)
	if err != nil {
		return nil, &refusal{code: codeIssuer, cause: err}
	}
	client, err := s.oauth(r, p, at)
	if err != nil {
		return nil, err
	}
	tokens, err := client.Exchange(s.issuers.context(r.Context()), q.Get("code"), oauth2.VerifierOption(st.Verifier))
	if err != nil {
		var said *oauth2.RetrieveError
		if errors.As(err, &said) {
			return nil, refuse(codeToken, "exchange the code: %s %s", said.Response.Status, said.ErrorCode)
		}
		return nil, &refusal{code: codeIssuer, cause: fmt.Errorf("exchange the code: %w", err)}
	}
	raw, _ := tokens.Extra("id_token").(string)
	c, err := s.issuers.verify(r.Context(), p, at, raw, st.Nonce)
	if err != nil {
		return nil, &refusal{code: codeToken, cause: fmt.Errorf("verify the ID token: %w", err)}
	}
	return s.resolve(r.Context(), p, c)
}

func (s *Service) begin(w http.ResponseWriter, r *http.Request, u *ent.User, force bool) error {
	result, err := s.auth.BeginExternal(w, r, u, force)
	if code, ok := refusals[result]; ok {
		return &refusal{code: code, cause: err, person: u, result: result}
	}
	return err
}

// refusals are the codes for reasons that prevent the login of a known user.
var refusals = map[loginattempt.Result]string{
	loginattempt.ResultNotActive:      codeInactive,
	loginattempt.ResultAddressRefused: codeAddress,
	loginattempt.ResultTooManyLogins:  codeTooMany,
}

// end redirects the browser to the login page with the code of an error.
func (s *Service) end(w http.ResponseWriter, r *http.Request, p *ent.IdentityProvider, err error) {
	ref := &refusal{code: codeInternal, cause: err}
	errors.As(err, &ref)
	id := requestid.From(r.Context())
	s.log.WarnContext(r.Context(), "login with a provider refused", "provider", r.PathValue("name"), "code", ref.code,
		"address", s.auth.ClientAddress(r), "error", ref.cause)
	if p != nil && r.URL.Query().Has("state") { // only the return from an issuer is an attempt
		x := auth.ExternalRefusal{Domain: p.DomainID, Email: ref.email, Result: loginattempt.ResultWrongCredentials}
		if ref.result != "" {
			x.Result = ref.result
		}
		if ref.person != nil {
			x.User, x.Email = ref.person.ID, ref.person.Email
		}
		if err := s.auth.RefuseExternal(r, x); err != nil {
			s.log.ErrorContext(r.Context(), "write login history", "error", err)
		}
	}
	to := url.Values{"error": {ref.code}}
	if id != "" {
		to.Set("request", id)
	}
	http.Redirect(w, r, "/login?"+to.Encode(), http.StatusSeeOther)
}

// arrive shows a page that continues by itself. A redirect would still belong to the
// navigation that began at the issuer, and the browser would not send the strict cookie.
func arrive(w http.ResponseWriter, path string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address contains the code
	path = html.EscapeString(path)
	fmt.Fprintf(w, `<!doctype html><meta charset="utf-8"><title>Berth</title>`+
		`<meta http-equiv="refresh" content="0;url=%s"><p><a href="%s">Continue</a></p>`+"\n", path, path)
}
