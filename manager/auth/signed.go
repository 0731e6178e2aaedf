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

// maxSignedBody is the largest body that can be signed. Files use tickets instead.
const maxSignedBody = 1 << 20

// signed returns the viewer of a signed request, and sets the rate limit headers of the
// answer.
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
	// Checked last, so that a client without the secret learns nothing, not even the server's time.
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
		return nil, problem.Exhausted("the keypair has used all %d requests of this window", left.limit).
			WithLimit(strconv.Itoa(left.limit)).RetryAfter(left.wait)
	}
	s.touch(ctx, c)
	return c.viewer, nil
}

// holder returns the keypair that made a signature. A missing keypair, an inactive one and a
// wrong secret give the same error after the same time.
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

// checkBody reads the body, compares it with the signed digest, and restores it.
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
	if len(body) > 0 { // an empty body must stay as it is, because an upgrade needs it
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return nil
}

// nonceLife is how long a nonce is stored: as long as a request with it would be accepted,
// from MaxSkew before its creation to MaxSkew after, plus a minute for clock adjustments.
const nonceLife = 2*signature.MaxSkew + time.Minute

// mostNonces limits one generation of the nonces in this process.
const mostNonces = 500_000

// nonces rejects repeated nonces: in Redis for all managers, and in the process for when Redis
// is unavailable. The process has two generations, so that old nonces can be dropped at no
// cost.
type nonces struct {
	redis redis.UniversalClient
	warn  func(ctx context.Context, msg string, args ...any)

	mu         sync.Mutex
	young, old map[string]struct{}
	since      time.Time // start of the young generation
}

// take reports whether the nonce is new, and stores it.
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
