package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthhq/berth/internal/requestid"
)

func TestFrom(t *testing.T) {
	unique := func(table, index string) error {
		return fmt.Errorf("ent: constraint failed: %w", &pgconn.PgError{
			Code: "23505", TableName: table, ConstraintName: index, Message: "duplicate key value",
		})
	}
	for name, c := range map[string]struct {
		err     error
		want    Problem
		unknown bool
	}{
		"own, wrapped": {
			err:  fmt.Errorf("create session: %w", Invalid("slots.cpu", "more than any agent has").WithLimit("32")),
			want: Problem{Code: CodeInvalidArgument, Message: "more than any agent has", Field: "slots.cpu", Limit: "32"},
		},
		"own, with a cause": {
			err:  Unavailable("agent a1 does not answer").Because(errors.New("dial unix /run/x.sock")),
			want: Problem{Code: CodeUnavailable, Message: "agent a1 does not answer"},
		},
		"own, the class of the cause does not matter": {
			err:  NotFound("image").Because(context.DeadlineExceeded),
			want: Problem{Code: CodeNotFound, Message: "image not found"},
		},
		"class by wrapping": {
			err:  fmt.Errorf("rename folder: %w", fmt.Errorf("it is mounted: %w", errdefs.ErrFailedPrecondition)),
			want: Problem{Code: CodeFailedPrecondition, Message: "rename folder: it is mounted"},
		},
		"conflict": {
			err:  fmt.Errorf("plan is old: %w", errdefs.ErrConflict),
			want: Problem{Code: CodeAborted, Message: "plan is old"},
		},
		"deadline": {
			err:  fmt.Errorf("SELECT 1: %w", context.DeadlineExceeded),
			want: Problem{Code: CodeDeadlineExceeded, Message: "the request took too long"},
		},
		"unavailable hides the address": {
			err:  fmt.Errorf("dial /run/postgres: %w", errdefs.ErrUnavailable),
			want: Problem{Code: CodeUnavailable, Message: "a part of the platform cannot be reached; try again later"},
		},
		"unknown is hidden": {
			err:     errors.New("pq: syntax error in SELECT password_hash"),
			want:    Problem{Code: CodeInternal, Message: "internal error"},
			unknown: true,
		},
		"unique column":  {err: unique("users", "users_email_key"), want: taken("email")},
		"unique columns": {err: unique("projects", "project_domain_id_name"), want: taken("name")},
		"username is not name": {
			err: unique("users", "users_username_key"), want: taken("username"),
		},
		"unique key in camel case": {
			err: unique("sessions", "session_owner_id_idempotency_key"), want: taken("idempotencyKey"),
		},
		"unknown state of the database": {
			err:     &pgconn.PgError{Code: "42P01", Message: `relation "users" does not exist`},
			want:    Problem{Code: CodeInternal, Message: "internal error"},
			unknown: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := From(c.err)
			if known == c.unknown {
				t.Errorf("known = %v", known)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func taken(field string) Problem {
	return Problem{Code: CodeAlreadyExists, Message: "this " + field + " is taken", Field: field}
}

func TestLongTextIsCut(t *testing.T) {
	p, _ := From(fmt.Errorf("%s\nsecond line: %w", strings.Repeat("ä", 10_000), errdefs.ErrInvalidArgument))
	if n := len([]rune(p.Message)); n != maxMessage+1 {
		t.Errorf("message has %d characters", n)
	}
}

func TestWriteHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		header http.Header
		body   map[string]any
	}{
		"throttled": {
			err:    Exhausted("too many attempts").RetryAfter(1500 * time.Millisecond),
			status: http.StatusTooManyRequests,
			header: http.Header{"Retry-After": {"2"}},
			body: map[string]any{
				"type": "about:blank", "title": "Too Many Requests", "status": 429.0, "detail": "too many attempts",
				"code": CodeResourceExhausted, "requestId": "r1",
			},
		},
		"body too large": {
			err:    fmt.Errorf("decode: %w", &http.MaxBytesError{Limit: 1024}),
			status: http.StatusRequestEntityTooLarge,
			body: map[string]any{
				"type": "about:blank", "title": "Request Entity Too Large", "status": 413.0,
				"detail": "the body is too large", "code": CodeInvalidArgument, "limit": "1024", "requestId": "r1",
			},
		},
		"internal": {
			err:    errors.New("open /etc/berth/secret"),
			status: http.StatusInternalServerError,
			body: map[string]any{
				"type": "about:blank", "title": "Internal Server Error", "status": 500.0, "detail": "internal error",
				"code": CodeInternal, "requestId": "r1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/auth/login", nil)
			WriteHTTP(w, r.WithContext(requestid.With(r.Context(), "r1")), c.err)
			if w.Code != c.status {
				t.Errorf("status %d, want %d", w.Code, c.status)
			}
			if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("content type %q", got)
			}
			for key := range c.header {
				if diff := cmp.Diff(c.header.Get(key), w.Header().Get(key)); diff != "" {
					t.Error(key, diff)
				}
			}
			raw, _ := io.ReadAll(w.Body)
			var body map[string]any
			if err := json.Unmarshal(raw, &body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.body, body); diff != "" {
				t.Error(diff)
			}
		})
	}
}
