package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// JSON sends a value as the response.
func JSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// Decode decodes a request's body strictly. It returns an error for a field that the product does
// not have, so that a plugin's mistake is found before it meets a real product.
func Decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("body: text after the value")
	}
	return nil
}

// Query returns an error for parameters that the product does not have.
func Query(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Page returns the part of all that begins at from, with at most n records and at most the page
// size. next is the start of the following page, or 0.
func Page[T any](a *Server, all []T, from, n int) (page []T, next int) {
	if n <= 0 || n > a.options.PageSize {
		n = a.options.PageSize
	}
	from = min(max(from, 0), len(all))
	end := min(from+n, len(all))
	if end < len(all) {
		next = end
	}
	return all[from:end], next
}

// Basic reports whether a request has the simulator's user and password.
func (a *Server) Basic(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && a.Login(user, password)
}

// Login reports whether these are the simulator's user and password.
func (a *Server) Login(user, password string) bool { return user == a.User && password == a.Password }

// Tokens are the tokens that a product issues at logins.
type Tokens struct {
	server *Server
	life   time.Duration
	mu     sync.Mutex
	ends   map[string]time.Time
}

// NewTokens returns a new kind of tokens; a life of 0 is TokenLife. A Fault can end all tokens of
// every kind.
func (a *Server) NewTokens(life time.Duration) *Tokens {
	if life <= 0 {
		life = a.options.TokenLife
	}
	t := &Tokens{server: a, life: life, ends: map[string]time.Time{}}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = append(a.tokens, t)
	return t
}

// Issue returns a new token and its lifetime.
func (t *Tokens) Issue() (string, time.Duration) {
	token := Random()
	t.server.hide(token)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[token] = time.Now().Add(t.life)
	return token, t.life
}

// Valid reports whether a token was issued and has not expired.
func (t *Tokens) Valid(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	end, ok := t.ends[token]
	return ok && time.Now().Before(end)
}

// Revoke ends one token, as a logout does.
func (t *Tokens) Revoke(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ends, token)
}

// End ends all tokens.
func (t *Tokens) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.ends)
}
