package inference

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
)

// Clients retry a 429 by themselves: a limit says when, a budget says that it is pointless. A body that is
// too large is neither.
func TestLimitsAndBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		header http.Header
	}{
		{&Limit{"too many requests", 1200 * time.Millisecond}, 429, "rate_limit_exceeded", http.Header{"Retry-After": {"2"}}},
		{&Limit{"too many requests", 0}, 429, "rate_limit_exceeded", http.Header{"Retry-After": {"1"}}},
		{fmt.Errorf("open: %w", &Limit{"too many requests", time.Minute}), 429, "rate_limit_exceeded", http.Header{"Retry-After": {"60"}}},
		{fmt.Errorf("the budget is spent: %w", errdefs.ErrResourceExhausted), 429, "insufficient_quota", http.Header{"X-Should-Retry": {"false"}}},
		{errTooLarge, 413, "request_too_large", http.Header{}},
	} {
		rec := httptest.NewRecorder()
		refuseError(rec, c.err)
		for _, name := range []string{"Retry-After", "X-Should-Retry"} {
			if got := rec.Header().Get(name); got != c.header.Get(name) {
				t.Errorf("%v: %s %q, want %q", c.err, name, got, c.header.Get(name))
			}
		}
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), `"code":"`+c.code+`"`) || strings.Contains(rec.Body.String(), "resource exhausted") {
			t.Errorf("%v: %d %s, want %d %s", c.err, rec.Code, rec.Body, c.status, c.code)
		}
	}
	if !errdefs.IsResourceExhausted(&Limit{}) {
		t.Error("a limit lacks the class ResourceExhausted")
	}
}
