package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/internal/viewer"
)

// maxSignedBody is the largest body whose digest is checked before anything else
// reads it. What is larger (files) goes by tickets.
const maxSignedBody = 1 << 20

// signed finds the viewer of a signed request, and tells in the answer what is
// left of the keypair's rate.
func (s *Service) signed(w http.ResponseWriter, r *http.Request) (*viewer.Viewer, error) {
	ctx := r.Context()
	parts, err := signature.Parse(r)
	if err != nil {
		return nil, problem.Unauthenticated(refused)
	}
	c, err := s.holder(ctx, parts)
	if err != nil {
		return nil, err
	}
	// Only now: who does not hold the secret learns nothing, not even the time.
	if t := clock.Now(); !parts.Fresh(t) {
		return nil, problem.Unauthenticated("the signature has expired, or was created more than %s from the server's time, %d (%s)",
			signature.MaxSkew, t.Unix(), t.UTC().Format(time.RFC3339)).WithField(signature.HeaderInput)
	}
	if err := checkBody(w, r, parts); err != nil {
		return nil, err
	}
	if !s.nonces.take(ctx, c.viewer.Credential.String()+":"+parts.Nonce) {
		return nil, problem.Unauthenticated(refused)
	}
	left := s.rates.take(ctx, c.viewer.Credential, c.rate)
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(left.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left.remaining))
	h.Set("X-RateLimit-Window", strconv.Itoa(int(rateWindow.Seconds())))
	if left.wait > 0 {
		return nil, problem.Exhausted("the keypair has made the %d requests it may make in this window", left.limit).
			WithLimit(strconv.Itoa(left.limit)).RetryAfter(left.wait)
	}
	s.touch(ctx, c)
	return c.viewer, nil
}

// holder finds the keypair that made a signature. That there is none, that it
// is not active and that another secret signed look the same and cost the same.
func (s *Service) holder(ctx context.Context, parts *signature.Parts) (*credential, error) {
	found, err := s.find(ctx, liveKeypairs+"c.access_key = $1", parts.AccessKey)
	if err != nil {
		return nil, err
	}
	secret := []byte(newSecret())
	if len(found) == 1 {
		if secret, err = s.keys.Open(seal.KeypairSecret, found[0].sealed); err != nil {
			return nil, err
		}
	}
	if ok := parts.Verify(string(secret)); !ok || len(found) == 0 || !fromAllowed(found[0].addresses, AddressFrom(ctx)) {
		return nil, problem.Unauthenticated(refused)
	}
	return found[0], nil
}

// checkBody reads the body and gives it back when it is what was signed.
func checkBody(w http.ResponseWriter, r *http.Request, parts *signature.Parts) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignedBody))
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return err
	}
	if err != nil {
		return fmt.Errorf("read signed body: %w", context.Cause(r.Context()))
	}
	if !parts.Matches(body) {
		return problem.Unauthenticated(refused)
	}
	if len(body) > 0 { // without one, r.Body may be what an upgrade needs
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return nil
}

// A nonce is kept as long as a request with it could be taken: from MaxSkew
// before it was created to MaxSkew after, and a minute for clocks that are set.
const nonceLife = 2*signature.MaxSkew + time.Minute

// mostNonces bounds one generation of those that this process keeps.
const mostNonces = 500_000

// nonces refuses those it has seen: in Redis for all managers, and in the
// process itself for when Redis is away. There they are kept in two
// generations, so that forgetting the old ones costs nothing.
type nonces struct {
	redis redis.UniversalClient
	warn  func(ctx context.Context, msg string, args ...any)

	mu         sync.Mutex
	young, old map[string]struct{}
	since      time.Time // when young was begun
}

// take reports whether the nonce is new, and remembers it.
func (n *nonces) take(ctx context.Context, nonce string) bool {
	if !n.takeHere(nonce, time.Now()) {
		return false
	}
	if n.redis == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	fresh, err := n.redis.SetNX(ctx, "berth:nonce:"+nonce, 1, nonceLife).Result()
	if err != nil {
		n.warn(ctx, "replays are found in this process only", "error", err)
		return true
	}
	return fresh
}

func (n *nonces) takeHere(nonce string, at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.young == nil || at.Sub(n.since) > nonceLife || len(n.young) >= mostNonces {
		n.young, n.old, n.since = map[string]struct{}{}, n.young, at
	}
	if _, seen := n.young[nonce]; seen {
		return false
	}
	if _, seen := n.old[nonce]; seen {
		return false
	}
	n.young[nonce] = struct{}{}
	return true
}
