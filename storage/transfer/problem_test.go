package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

// TestOneFormatOfProblems compares the errors of the storage proxy with those of a manager's
// routes: status and body must be equal, byte for byte.
func TestOneFormatOfProblems(t *testing.T) {
	s, err := New(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var failure error
	s.Mount("/fails", "test", func(http.ResponseWriter, *http.Request) error { return failure })
	manager := requestid.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.WriteHTTP(w, r, failure)
	}))
	ask := func(h http.Handler, id string) (status int, kind, answered, body string) {
		r := httptest.NewRequest(http.MethodGet, "/fails", nil)
		r.Header.Set(requestid.Header, id)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Content-Type"), w.Header().Get(requestid.Header), w.Body.String()
	}
	for _, c := range []struct {
		err    error
		status int
		has    string
	}{
		{fmt.Errorf("x: %w", errdefs.ErrInvalidArgument), 400, `"detail":"x","code":"INVALID_ARGUMENT","requestId":"r.1_a"`},
		{fmt.Errorf("x: %w", errdefs.ErrUnauthenticated), 401, `"code":"UNAUTHENTICATED"`},
		{fmt.Errorf("x: %w", errdefs.ErrPermissionDenied), 403, `"code":"PERMISSION_DENIED"`},
		{fmt.Errorf("x: %w", errdefs.ErrNotFound), 404, `"code":"NOT_FOUND"`},
		{fmt.Errorf("x: %w", errdefs.ErrAlreadyExists), 409, `"code":"ALREADY_EXISTS"`},
		{fmt.Errorf("x: %w", errdefs.ErrConflict), 409, `"code":"ABORTED"`},
		{fmt.Errorf("x: %w", errdefs.ErrFailedPrecondition), 409, `"code":"FAILED_PRECONDITION"`},
		{problem.NotFound("upload").WithStatus(http.StatusGone), 410, `"title":"Gone","status":410,"detail":"upload not found","code":"NOT_FOUND"`},
		{problem.Changed("If-Match", "the file exists"), 412, `"code":"FAILED_PRECONDITION","field":"If-Match"`},
		{problem.TooLarge("Upload-Length", 10), 413, `"code":"INVALID_ARGUMENT","field":"Upload-Length","limit":"10"`},
		{problem.Invalid("Upload-Checksum", "x").WithStatus(problem.StatusChecksum), 460, `"title":"Checksum Mismatch","status":460`},
		{fmt.Errorf("x: %w", errdefs.ErrResourceExhausted), 429, `"code":"RESOURCE_EXHAUSTED"`},
		{fmt.Errorf("x: %w", problem.ErrNoSpace), 507, `"detail":"x","code":"RESOURCE_EXHAUSTED"`},
		{problem.Full("x").WithLimit("4096"), 507, `"code":"RESOURCE_EXHAUSTED","limit":"4096"`},
		{errors.New("open /etc/secret"), 500, `"detail":"internal error","code":"INTERNAL"`},
		{problem.Unavailable("volume main is not mounted"), 503, `"detail":"volume main is not mounted","code":"UNAVAILABLE"`},
		{context.DeadlineExceeded, 504, `"code":"DEADLINE_EXCEEDED"`},
	} {
		failure = c.err
		status, kind, answered, body := ask(s, "r.1_a")
		if status != c.status || kind != "application/problem+json" || answered != "r.1_a" || !strings.Contains(body, c.has) {
			t.Errorf("%v: %d %s %s %s, want %d with %s", c.err, status, kind, answered, body, c.status, c.has)
		}
		managers, _, _, other := ask(manager, "r.1_a")
		if diff := cmp.Diff(other, body); diff != "" || managers != status {
			t.Errorf("%v: a manager answers %d, the proxy %d: %s", c.err, managers, status, diff)
		}
	}
	for _, id := range []string{"", "with space", "a/b", "ünicode", strings.Repeat("x", 65)} {
		for name, h := range map[string]http.Handler{"proxy": s, "manager": manager} {
			if _, _, answered, body := ask(h, id); answered == "" || answered == id || !strings.Contains(body, `"requestId":"`+answered+`"`) {
				t.Errorf("%s takes the request id %q: %q, %s", name, id, answered, body)
			}
		}
	}
}
