package simulator

import (
	"sync"
	"time"
)

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
