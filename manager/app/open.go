package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
)

// OpenAppInput names an app to open, by name or port.
type OpenAppInput struct {
	Session uuid.UUID
	App     *string
	Port    *int
	Kernel  *uuid.UUID
	Path    *string
	Folder  *string
}

// OpenAppPayload has the address of an app.
type OpenAppPayload struct {
	URL       string
	Address   string
	ExpiresAt time.Time
}

// EnterPath is the path on the host of an app at which a ticket is redeemed. Paths below its directory
// belong to the gateway, and are never forwarded.
const EnterPath = "/.berth/enter"

const (
	ticketLife = 30 * time.Second
	maxPath    = 2000
)

// Ticket has the viewer and the target of a one-use ticket.
type Ticket struct {
	Target     Target    `json:"target"`
	Credential uuid.UUID `json:"credential"`
	User       uuid.UUID `json:"user"`
	Path       string    `json:"path"`
}

// OpenApp returns an address that opens an app once.
func (s *Service) OpenApp(ctx context.Context, in OpenAppInput) (*OpenAppPayload, error) {
	t, err := s.target(ctx, in.Session, in.App, in.Port, in.Kernel)
	if err != nil {
		return nil, err
	}
	path, err := s.pathOf(t, in)
	if err != nil {
		return nil, err
	}
	return s.Mint(ctx, t, path)
}

// Mint creates a one-use ticket for the viewer if they can open the target.
func (s *Service) Mint(ctx context.Context, t Target, path string) (*OpenAppPayload, error) {
	v := viewer.From(ctx)
	p, err := s.Admit(ctx, v, auth.AddressFrom(ctx), t)
	if err != nil {
		return nil, err
	}
	if p.Over() {
		return nil, problem.Precondition("session %s has ended", p.Session.Name)
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	address, err := s.address(ctx, p)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(Ticket{Target: t, Credential: v.Credential, User: v.User, Path: path})
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	code := base64.RawURLEncoding.EncodeToString(secret)
	if err := s.Redis.Set(ctx, ticketKey(code), text, ticketLife).Err(); err != nil {
		return nil, problem.Unavailable("the ticket cannot be stored").RetryAfter(time.Second).Because(err)
	}
	return &OpenAppPayload{
		URL:     strings.TrimSuffix(address, "/") + EnterPath + "?ticket=" + url.QueryEscape(code),
		Address: address, ExpiresAt: clock.Now().Add(ticketLife),
	}, nil
}

func ticketKey(code string) string {
	sum := sha256.Sum256([]byte(code))
	return "app:ticket:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkPath accepts only a path of the app itself: with //elsewhere or \\elsewhere, a browser would
// go to another host.
func checkPath(path string) error {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxPath || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\x00\r\n\t") {
		return problem.Invalid("path", "must be a path of at most %d characters that begins with one slash", maxPath)
	}
	return nil
}

// Redeem returns the content of a ticket. A ticket can be redeemed once.
func (s *Service) Redeem(ctx context.Context, code string) (*Ticket, error) {
	text, err := s.Redis.GetDel(ctx, ticketKey(code)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, problem.Unauthenticated("the ticket was used or has expired")
	}
	if err != nil {
		return nil, problem.Unavailable("the ticket cannot be checked").RetryAfter(time.Second).Because(err)
	}
	t := &Ticket{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("read ticket: %w", err)
	}
	return t, nil
}

// PathPrefix is the path below which apps are in path mode.
const PathPrefix = "/apps/"

// IsAppOrigin reports whether a request's Origin is that of an app, which must not call the API.
func (s *Service) IsAppOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	for _, g := range s.Gateways() {
		if at, err := url.Parse(strings.Replace(g.Apps, "*", "x", 1)); err == nil && g.Apps != "" {
			if strings.HasSuffix(strings.ToLower(u.Hostname()), strings.TrimPrefix(strings.ToLower(at.Hostname()), "x")) {
				return true
			}
		}
		if at, err := url.Parse(g.Paths); err == nil && g.Paths != "" && strings.EqualFold(at.Host, u.Host) {
			return true
		}
		if g.Ports != nil && g.Ports.origin(u) {
			return true
		}
	}
	return false
}
