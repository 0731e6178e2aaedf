// Package audit keeps the audit log: every change and denied request, with user, object and result.
// It also deletes rows after their retention. GraphQL and HTTP handlers record through it; it
// imports no other service.
package audit

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// Results other than the codes of problems.
const (
	OK = "OK" // success
	// StartedResult is the result of an operation that runs, or whose manager died.
	StartedResult = "STARTED"
)

const (
	maxMessage   = 500 // characters
	writeTimeout = 5 * time.Second
	retryAfter   = 3 * time.Second // for a change that was refused because its row could not be written
)

// Service writes and reads the audit log.
type Service struct {
	client   *ent.Client
	sweepers map[string]Sweep
	log      *slog.Logger
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	// Sweepers delete the objects of categories that are more than rows. A category without
	// a sweeper is kept.
	Sweepers map[string]Sweep
	Logger   *slog.Logger
}

// Sweep deletes some of the objects from before a time, and returns their number.
type Sweep func(ctx context.Context, before time.Time) (int, error)

// New returns a service.
func New(cfg Config) *Service {
	return &Service{client: cfg.Client, sweepers: cfg.Sweepers, log: cfg.Logger}
}

// Entry is the content of one row, without the actor. A zero Domain and Project are looked up
// by ID.
type Entry struct {
	Action   string
	Entity   access.Entity // looked up by ID if empty
	ID       uuid.UUID
	Domain   uuid.UUID
	Project  uuid.UUID
	Result   string // OK if empty
	Message  string
	Duration time.Duration
}

// Failed returns the entry with the result for err. A message that the user does not get is
// not in the audit log either.
func (e Entry) Failed(err error) Entry {
	p, _ := problem.From(err)
	e.Result, e.Message = p.Code, p.Message
	if p.Field != "" {
		e.Message = p.Field + ": " + p.Message
	}
	return e
}

// Denial reports whether a result is a denial.
func Denial(result string) bool {
	return result == problem.CodePermissionDenied || result == problem.CodeUnauthenticated
}

// Denied records err if it is a denial.
func (s *Service) Denied(ctx context.Context, e Entry, err error) {
	if e = e.Failed(err); Denial(e.Result) {
		s.Record(ctx, e)
	}
}

// Record writes one row for the viewer. The operation has already happened or was refused, so
// a failure to write the row is only logged.
func (s *Service) Record(ctx context.Context, e Entry) {
	if err := s.Require(ctx, e); err != nil {
		s.lost(ctx, e, err)
	}
}

// Require writes one row for the viewer, for operations that must not happen without a row.
// After an error, the caller must not continue.
func (s *Service) Require(ctx context.Context, e Entry) error {
	if e.Result == "" {
		e.Result = OK
	}
	ctx, cancel := writing(ctx)
	defer cancel()
	_, err := s.create(ctx, s.locate(ctx, e))
	return err
}

// Begin writes a row with the result STARTED before an operation. If the row cannot be
// written, it returns an error of the class UNAVAILABLE, and the caller must not change
// anything. End completes the row.
func (s *Service) Begin(ctx context.Context, e Entry) (*Started, error) {
	e.Result = StartedResult
	if v := viewer.From(ctx); v != nil && !v.IsAnonymous() {
		e.Domain = v.Domain
	}
	ctx, cancel := writing(ctx)
	defer cancel()
	row, err := s.create(ctx, e)
	if err != nil {
		s.lost(ctx, e, err)
		return nil, problem.Unavailable("the audit log cannot be written, and nothing was changed").RetryAfter(retryAfter).Because(err)
	}
	return &Started{s, row}, nil
}

// Started is the row of a running operation.
type Started struct {
	service *Service
	row     uuid.UUID
}

// End completes the row. If the manager dies before that, or the database is unreachable, the
// row keeps the result STARTED: the outcome is unknown.
func (st *Started) End(ctx context.Context, e Entry) {
	s := st.service
	if e.Result == "" {
		e.Result = OK
	}
	ctx, cancel := writing(ctx)
	defer cancel()
	e = s.locate(ctx, e)
	_, err := s.client.ExecContext(ctx, `UPDATE audit_entries SET result = $2, message = $3, duration_us = $4,
		entity = $5, entity_id = $6, domain_id = $7, project_id = $8 WHERE id = $1`,
		st.row, e.Result, cut(e.Message), e.Duration.Microseconds(), string(e.Entity), known(e.ID), known(e.Domain), known(e.Project))
	if err != nil {
		s.lost(ctx, e, err)
	}
}

// writing returns the context for writing a row: it does not end with the request, and uses a
// separate pool of connections.
func writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(store.On(context.WithoutCancel(ctx), store.Audit), writeTimeout)
}

func (s *Service) lost(ctx context.Context, e Entry, err error) {
	s.log.ErrorContext(ctx, "write audit entry", "action", e.Action, "entity", e.ID, "result", e.Result, "error", err)
}

func (s *Service) create(ctx context.Context, e Entry) (uuid.UUID, error) {
	system := viewer.SystemContext(ctx)
	c := s.client.AuditEntry.Create().
		SetAction(e.Action).SetEntity(string(e.Entity)).SetResult(e.Result).SetMessage(cut(e.Message)).
		SetRequestID(requestid.From(ctx)).SetClientAddress(address(ctx)).SetDurationUs(e.Duration.Microseconds()).
		SetNillableEntityID(known(e.ID)).SetNillableDomainID(known(e.Domain)).SetNillableProjectID(known(e.Project))
	if v := viewer.From(ctx); v != nil && !v.IsAnonymous() && !v.IsSystem() {
		actor, email := v.User, v.Email
		if v.Actor != uuid.Nil && v.Actor != v.User {
			actor, email = v.Actor, s.emailOf(system, v.Actor)
			c.SetActedAsID(v.User)
		}
		c.SetActorID(actor).SetActorEmail(email).SetNillableCredentialID(known(v.Credential))
	}
	row, err := c.Save(system)
	if err != nil {
		return uuid.Nil, err
	}
	return row.ID, nil
}

func (s *Service) emailOf(ctx context.Context, id uuid.UUID) string {
	email, err := s.client.User.Query().Where(user.ID(id)).Select(user.FieldEmail).String(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "name the actor", "user", id, "error", err)
	}
	return email
}

func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func cut(text string) string {
	if r := []rune(text); len(r) > maxMessage {
		return string(r[:maxMessage]) + "…"
	}
	return text
}

type addressKey struct{}

// Address is middleware that adds the client's address to the rows of a request.
func Address(of func(*http.Request) netip.Addr, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := ""
		if a := of(r); a.IsValid() {
			text = a.String()
		}
		next.ServeHTTP(w, r.WithContext(From(r.Context(), text)))
	})
}

// From adds a client's address to the rows that are written with the context.
func From(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

func address(ctx context.Context) string {
	text, _ := ctx.Value(addressKey{}).(string)
	return text
}
