package devicelogin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
)

const (
	// StartPath and TokenPath are for programs without a credential.
	StartPath = "/auth/device-login"
	TokenPath = "/auth/device-token"
	// CodePath is for people who are logged in.
	CodePath = "/auth/device/{code}"

	maxBody = 4 << 10
	maxHost = 32
)

// Register adds the routes. The caller authenticates requests for CodePath.
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST "+StartPath, s.handle(s.start))
	mux.HandleFunc("POST "+TokenPath, s.handle(s.token))
	mux.HandleFunc("GET "+CodePath, s.handle(s.show))
	mux.HandleFunc("POST "+CodePath, s.handle(s.answer))
}

func (s *Service) handle(f func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		out, err := f(w, s.Auth.Addressed(r))
		if err != nil {
			if !problem.WriteHTTP(w, r, err) {
				s.Logger.ErrorContext(r.Context(), "login by code", "error", err)
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // the client may have disconnected
	}
}

func body(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem.Invalid("Content-Type", "must be application/json")
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into); err != nil {
		return problem.Invalid("body", "is not the JSON of this request, of at most %d bytes", maxBody)
	}
	return nil
}

// started is the answer to a program that begins.
type started struct {
	DeviceCode  string `json:"device_code"`
	UserCode    string `json:"user_code"`
	URL         string `json:"verification_uri"`
	CompleteURL string `json:"verification_uri_complete"`
	Expires     int    `json:"expires_in"` // seconds
	Interval    int    `json:"interval"`   // seconds
}

// start begins a login: everyone can call it.
func (s *Service) start(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Host        string `json:"host"`
		ExpiresDays int    `json:"expiresDays"`
	}
	if err := body(w, r, &in); err != nil {
		return nil, err
	}
	if in.ExpiresDays < 0 || in.ExpiresDays > maxDays {
		return nil, problem.Invalid("expiresDays", "%d is not 0 (never) or a number of days up to %d", in.ExpiresDays, maxDays)
	}
	from := s.Auth.ClientAddress(r)
	if _, wait := s.Auth.Throttle(r.Context(), "device", from, mostStarts); wait > 0 {
		return nil, problem.Exhausted("too many logins by code from this address, try again later").RetryAfter(wait)
	}
	secret, code, err := s.begin(r.Context(), request{
		Host: cmp.Or(printable(in.Host, maxHost, nameable), "an unnamed computer"), Program: printable(r.UserAgent(), 4*maxHost, unicode.IsPrint), Address: from.Unmap().String(), Created: clock.Now().UTC(), Days: in.ExpiresDays,
	})
	if err != nil {
		return nil, err
	}
	page := s.Auth.PublicURL(r) + "/device"
	return started{secret, shown(code), page, page + "?code=" + shown(code), int(life.Seconds()), int(interval.Seconds())}, nil
}

// printable returns the ASCII characters of a text that are allowed, up to a number of them.
func printable(text string, most int, allowed func(rune) bool) string {
	text = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && allowed(r) {
			return r
		}
		return -1
	}, text)
	return strings.TrimSpace(text[:min(most, len(text))])
}

// nameable reports whether the name of a token can have a character.
func nameable(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .-_", r)
}

// granted is the answer to a program that waits: pending, denied, or done with the token.
type granted struct {
	Status  string    `json:"status"`
	Token   string    `json:"token,omitempty"`
	TokenID uuid.UUID `json:"token_id,omitzero"`
}

// token answers a program that waits. The token is created here, with the rights of the login that has confirmed it.
func (s *Service) token(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		DeviceCode string `json:"device_code"`
	}
	if err := body(w, r, &in); err != nil {
		return nil, err
	}
	ctx, hash := r.Context(), hashOf(in.DeviceCode)
	allowed, err := s.Redis.SetNX(ctx, pollKey(hash), 1, interval/2).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	if !allowed {
		return nil, problem.Exhausted("wait %d s between two requests", int(interval.Seconds())).RetryAfter(interval)
	}
	d, req, err := s.take(ctx, hash)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return granted{Status: "pending"}, nil
	case !d.Confirmed:
		return granted{Status: "denied"}, nil
	}
	return s.grant(ctx, *d, req)
}

func (s *Service) grant(ctx context.Context, d decision, req request) (any, error) {
	v, err := s.Auth.Holder(ctx, d.Login)
	if err != nil {
		return nil, err
	}
	if v.User != d.User || v.Due != "" {
		return nil, problem.Unauthenticated("the login that has confirmed the code has ended")
	}
	ctx = viewer.With(ctx, v)
	entry := audit.Entry{Action: "deviceLogin", Entity: access.User, ID: v.User, Message: req.Host + ", " + req.Address}
	begun, err := s.Audit.Begin(ctx, entry)
	if err != nil {
		return nil, err
	}
	in := auth.CreateAccessTokenInput{Name: tokenName(req)}
	if req.Days > 0 {
		end := clock.Now().AddDate(0, 0, req.Days)
		in.ExpiresAt = &end
	}
	made, err := s.Auth.CreateAccessToken(ctx, in)
	if err != nil {
		begun.End(ctx, entry.Failed(err))
		return nil, err
	}
	entry.Result = audit.OK
	begun.End(ctx, entry)
	return granted{Status: "done", Token: *made.Secret, TokenID: made.AccessToken.ID}, nil
}

// show returns the request with a code, for the page on which a person confirms it.
func (s *Service) show(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := s.person(r.Context()); err != nil {
		return nil, err
	}
	_, req, err := s.find(r.Context(), plain(r.PathValue("code")))
	if err != nil {
		return nil, err
	}
	return req, nil
}

// answer stores what a person has decided.
func (s *Service) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Confirm bool `json:"confirm"`
	}
	if err := body(w, r, &in); err != nil {
		return nil, err
	}
	ctx := r.Context()
	v, err := s.person(ctx)
	if err != nil {
		s.Audit.Denied(ctx, audit.Entry{Action: "confirmDeviceLogin"}, err)
		return nil, err
	}
	code := plain(r.PathValue("code"))
	_, req, err := s.find(ctx, code)
	if err != nil {
		return nil, err
	}
	entry := audit.Entry{Action: "denyDeviceLogin", Entity: access.User, ID: v.User, Message: req.Host + ", " + req.Address}
	if in.Confirm {
		entry.Action = "confirmDeviceLogin"
	}
	begun, err := s.Audit.Begin(ctx, entry)
	if err != nil {
		return nil, err
	}
	if err := s.decide(ctx, code, decision{in.Confirm, v.Credential, v.User}); err != nil {
		begun.End(ctx, entry.Failed(err))
		return nil, err
	}
	entry.Result = audit.OK
	begun.End(ctx, entry)
	return req, nil
}

// person returns the viewer if they are logged in on the page themselves, and counts one try of a code. An access token cannot
// confirm: it would make a further one without a person.
func (s *Service) person(ctx context.Context) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	switch {
	case v == nil || v.IsAnonymous():
		return nil, problem.Unauthenticated("log in first")
	case v.Due != "":
		return nil, problem.Forbidden("complete your login first")
	case v.Actor != uuid.Nil:
		return nil, problem.Forbidden("a login by code cannot be confirmed while acting as another user")
	}
	own, err := s.Client.LoginSession.Query().Where(loginsession.ID(v.Credential), loginsession.UserID(v.User)).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the login: %w", err)
	}
	if !own {
		return nil, problem.Forbidden("a login by code is confirmed on the page, not with an access token or a keypair")
	}
	if wait := s.Auth.ThrottleOf(ctx, "device-code", v.User, mostTries); wait > 0 {
		return nil, problem.Exhausted("too many codes, try again later").RetryAfter(wait)
	}
	return v, nil
}
