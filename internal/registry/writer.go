package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/registry/pushtoken"
)

// AllowPush makes the registry accept writes with tokens that the key signed. Without it, network
// clients can only read. Call it before Serve.
func (r *Registry) AllowPush(key pushtoken.Key) { r.pushKey = key }

// access is what a request may do beyond reading.
type access struct {
	all   bool // from inside this process
	token string
	grant *pushtoken.Grant
}

// source reports whether layers of a repository can be mounted.
func (a access) source(repository string) bool {
	return a.all || a.grant != nil && (repository == a.grant.From || a.grant.Covers(repository))
}

// push handles a request with a push token. It reports false for requests without one.
func (r *Registry) push(w http.ResponseWriter, req *http.Request) bool {
	name, token, ok := req.BasicAuth()
	if !ok || name != pushtoken.User || r.pushKey == nil {
		return false
	}
	g, err := r.pushKey.Open(token, time.Now())
	if err != nil {
		challenge(w, err.Error())
		return true
	}
	if req.URL.Path == sweepPath {
		r.sweep(w, req, g)
		return true
	}
	if why := forbidden(g, req); why != "" {
		deny(w, http.StatusForbidden, "DENIED", why)
		return true
	}
	r.serve(w, req, access{token: token, grant: &g})
	return true
}

// writing are the methods of an upload.
var writing = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch}

// forbidden returns why a token does not permit a request, and "" if it does.
func forbidden(g pushtoken.Grant, req *http.Request) string {
	at, ok := parse(req.URL.Path)
	switch {
	case ok && at.kind == ping && req.Method == http.MethodGet:
		return ""
	case !ok || !g.Covers(at.repository):
		if g.Namespace != "" {
			return "the push token is for repositories below " + g.Namespace + " only"
		}
		return "the push token is for the repository " + g.Repository + " only"
	case g.Namespace == "" && at.kind == tags:
		return "the push token does not permit the list of tags"
	case req.Method == http.MethodDelete && (at.kind == upload || g.Delete):
	case !slices.Contains(writing, req.Method):
		return "the push token does not permit " + req.Method
	}
	for _, from := range req.URL.Query()["from"] {
		if from != g.From && !g.Covers(from) {
			return "the push token does not permit layers of the repository " + from
		}
	}
	return ""
}

// ledger counts the bytes that each token with a quota has added.
type ledger struct {
	mu     sync.Mutex
	tokens map[string]spending
}

type spending struct {
	bytes   int64
	expires time.Time
}

// maxLayer limits a blob without a quota.
const maxLayer = 1 << 40

// left returns the bytes that a token can add.
func (l *ledger) left(a access) int64 {
	if a.grant == nil || a.grant.Quota == nil {
		return maxLayer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, a.grant.Quota.Max-a.grant.Quota.Used-l.tokens[a.token].bytes)
}

// spend adds bytes of a finished upload, and reports whether the quota has room for them.
func (l *ledger) spend(a access, n int64) bool {
	if a.grant == nil || a.grant.Quota == nil || a.grant.Quota.Blobs > 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, s := range l.tokens {
		if time.Now().After(s.expires) {
			delete(l.tokens, t)
		}
	}
	has := l.tokens[a.token].bytes
	if a.grant.Quota.Used+has+n > a.grant.Quota.Max {
		return false
	}
	l.tokens[a.token] = spending{bytes: has + n, expires: a.grant.Expires}
	return true
}

// refusal names the numbers of a quota that has no room.
func (l *ledger) refusal(a access) string {
	q := a.grant.Quota
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%s has %d bytes of images of at most %d bytes, and this push has added %d: it would exceed the limit",
		strings.TrimSpace(q.Of), q.Used, q.Max, l.tokens[a.token].bytes)
}
