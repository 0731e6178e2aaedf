package simulator

import (
	"sync"
	"time"
)

// Tokens are what a product hands out to those who have logged in.
type Tokens struct {
	server *Server
	life   time.Duration
	mu     sync.Mutex
	ends   map[string]time.Time
}

// NewTokens makes a kind of tokens; a life of 0 is the array's TokenLife. A Fault
// ends those of every kind.
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

// Issue makes a token and says how long it holds.
func (t *Tokens) Issue() (string, time.Duration) {
	token := Random()
	t.server.hide(token)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[token] = time.Now().Add(t.life)
	return token, t.life
}

// Valid reports whether a token was issued and holds.
func (t *Tokens) Valid(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	end, ok := t.ends[token]
	return ok && time.Now().Before(end)
}

// Revoke ends one, as a log-out does.
func (t *Tokens) Revoke(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ends, token)
}

// End ends them all.
func (t *Tokens) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.ends)
}
