package serving_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/deployment/key"
)

func ptr[T any](v T) *T { return &v }

// early waits until the minute of Redis has at least 20 s left, so that no limit of a test ends within it.
func (w *world) early() {
	eventually(w.t, "the minute has begun", func() bool {
		now, err := w.redis.Time(w.ctx).Result()
		return err == nil && now.Second() < 40
	})
}

// Every request with its tokens is counted, at the key's row too, also when the gateway ends.
func TestUsageOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("m", nil)
	row, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	for range 5 {
		w.expect("a request", secret, "m", 200, "one")
	}
	if status, _ := text(t, w.request(http.MethodPost, "/v1/completions", secret, `{"model":"m","prompt":"one two three","max_tokens":4,"stream":true}`)); status != 200 {
		t.Errorf("a stream: %d", status)
	}
	w.stop()
	got := w.Client.DeploymentKey.GetX(w.ctx, row.ID)
	if got.UsedRequests != 6 || got.UsedTokens != 6*(3+4) || got.LastUsedAt == nil || time.Since(*got.LastUsedAt) > time.Minute {
		t.Errorf("%d requests, %d tokens, last used %v; want 6 and 42", got.UsedRequests, got.UsedTokens, got.LastUsedAt)
	}
}

// Limits count over all gateways, and an error says which limit it is and when it ends.
func TestLimitsOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("m", nil)
	w.early()
	limit := func(what, secret, code, part string) {
		t.Helper()
		eventually(t, what, func() bool { status, _ := w.ask(secret, "m"); return status == http.StatusTooManyRequests })
		resp := w.request(http.MethodPost, "/v1/completions", secret, `{"model":"m","prompt":"x"}`)
		status, answer := text(t, resp)
		if status != 429 || !strings.Contains(answer, code) || !strings.Contains(answer, part) {
			t.Errorf("%s: %d %s, want 429 %s %s", what, status, answer, code, part)
		}
		if after := resp.Header.Get("Retry-After"); (after == "") != (code == "insufficient_quota") {
			t.Errorf("%s: Retry-After %q", what, after)
		}
	}
	_, requests := w.key(w.A.Member, key.CreateDeploymentKeyInput{RequestsPerMinute: ptr(2)})
	w.expect("the first request", requests, "m", 200, "one")
	w.stop()
	w.serve() // another gateway
	w.expect("the second request", requests, "m", 200, "one")
	w.expect("the third request", requests, "m", 429, "rate_limit_exceeded")
	limit("requests", requests, "rate_limit_exceeded", "2 requests per minute")

	_, tokens := w.key(w.A.Member, key.CreateDeploymentKeyInput{TokensPerMinute: ptr(10)})
	w.expect("the first request", tokens, "m", 200, "one")
	limit("tokens", tokens, "rate_limit_exceeded", "10 tokens per minute")

	row, budget := w.key(w.A.Member, key.CreateDeploymentKeyInput{TokenBudget: ptr(int64(10))})
	w.expect("the first request", budget, "m", 200, "one")
	limit("the budget", budget, "insufficient_quota", "budget of 10 tokens")
	w.redis.FlushAll(w.ctx) // then the row counts
	eventually(t, "the usage is stored", func() bool { return w.Client.DeploymentKey.GetX(w.ctx, row.ID).UsedTokens >= 10 })
	limit("the budget without Redis's memory", budget, "insufficient_quota", "budget of 10 tokens")
	if _, err := w.keys.UpdateDeploymentKey(w.As(t, w.A.Member), key.UpdateDeploymentKeyInput{ID: row.ID, TokenBudget: ptr(int64(1000))}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a larger budget counts", func() bool { status, _ := w.ask(budget, "m"); return status == 200 })
}

// Without Redis, keys without limits work, and keys with limits are refused.
func TestLimitsWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("m", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	_, free := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	_, limited := w.key(w.A.Member, key.CreateDeploymentKeyInput{RequestsPerMinute: ptr(100)})
	w.expect("a key with a limit", limited, "m", 200, "one")
	w.redis.Close()
	w.expect("a key without limits", free, "m", 200, "one")
	w.expect("no key", "", "m", 200, "one")
	w.expect("a key with a limit", limited, "m", 503, "limits of the key cannot be checked")
}
