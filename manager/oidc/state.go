package oidc

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/seal"
)

const (
	stateLife = 10 * time.Minute
	maxReturn = 1024 // a cookie is limited to 4 KiB
)

// state is the encrypted state of a login in the browser's cookie, from the start to the
// callback.
type state struct {
	Provider uuid.UUID `json:"p"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Return   string    `json:"r"`
	Force    bool      `json:"f,omitempty"` // end the oldest login if the limit is reached
	Expires  time.Time `json:"e"`
}

func newState(provider uuid.UUID, back string) state {
	return state{
		Provider: provider, State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(),
		Return: back, Expires: clock.Now().Add(stateLife),
	}
}

func (s *Service) cookieName(r *http.Request) string {
	if s.auth.OverTLS(r) {
		return "__Host-berth-oidc"
	}
	return "berth-oidc"
}

// keep sets the cookie with the state; nil deletes it. The callback is a request that begins
// on another site, so the cookie is lax.
func (s *Service) keep(w http.ResponseWriter, r *http.Request, st *state) {
	c := &http.Cookie{
		Name: s.cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.auth.OverTLS(r), SameSite: http.SameSiteLaxMode,
	}
	if st != nil {
		body, _ := json.Marshal(st) // strings, an id and a time
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(s.keys.Seal(seal.LoginState, body)), int(stateLife.Seconds())
	}
	http.SetCookie(w, c)
}

// kept reads the state from the cookie.
func (s *Service) kept(r *http.Request) (st state, ok bool) {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return st, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return st, false
	}
	body, err := s.keys.Open(seal.LoginState, sealed)
	if err != nil || json.Unmarshal(body, &st) != nil {
		return st, false
	}
	return st, clock.Now().Before(st.Expires)
}

// local returns the path to return to, or / if it is not a local path.
func local(path string) string {
	// browsers treat \ as /, and drop tabs and line ends
	odd := strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f })
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || odd || len(path) > maxReturn {
		return "/"
	}
	return path
}

// used remembers the states that came back, so that each is accepted once: in Redis for all
// managers, and in the process for when Redis is unavailable.
type used struct {
	redis redis.UniversalClient
	log   *slog.Logger

	mu   sync.Mutex
	seen map[string]time.Time
}

func newUsed(client redis.UniversalClient, log *slog.Logger) *used {
	return &used{redis: client, log: log, seen: map[string]time.Time{}}
}

// first reports whether a state is used for the first time.
func (u *used) first(ctx context.Context, id string) bool {
	if !u.firstHere(id) {
		return false
	}
	if u.redis == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	ok, err := u.redis.SetNX(ctx, "berth:oidc:"+id, 1, stateLife).Result()
	if err != nil {
		u.log.WarnContext(ctx, "login states are stored in this process only", "error", err)
		return true
	}
	return ok
}

func (u *used) firstHere(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := clock.Now()
	for old, until := range u.seen {
		if t.After(until) {
			delete(u.seen, old)
		}
	}
	if _, ok := u.seen[id]; ok {
		return false
	}
	u.seen[id] = t.Add(stateLife)
	return true
}
