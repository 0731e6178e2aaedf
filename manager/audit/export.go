package audit

import (
	"bufio"
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/csvtext"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// exportBatch is the number of rows in memory.
const exportBatch = 500

// Register adds the route of the export to mux.
func (s *Service) Register(mux *http.ServeMux) { mux.HandleFunc("GET /export/audit.csv", s.export) }

// export streams the rows that the viewer can see, oldest first.
func (s *Service) export(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	where, err := s.exportOf(ctx, r.URL.Query())
	var first []*ent.AuditEntry
	if err == nil {
		first, err = s.page(ctx, where, nil)
	}
	if err != nil {
		s.Denied(ctx, Entry{Action: "exportAudit", Entity: access.Audit}, err)
		if !problem.WriteHTTP(w, r, err) {
			s.log.ErrorContext(ctx, "export audit", "error", err)
		}
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="audit.csv"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err := s.stream(ctx, w, where, first); err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "export audit", "error", err)
		}
		panic(http.ErrAbortHandler) // aborted, so that a partial export does not look complete
	}
}

func (s *Service) stream(ctx context.Context, w http.ResponseWriter, where []predicate.AuditEntry, page []*ent.AuditEntry) error {
	buf := bufio.NewWriter(w)
	out := csv.NewWriter(buf)
	if err := out.Write(columns); err != nil {
		return err
	}
	for {
		for _, e := range page {
			if err := out.Write(cells(e)); err != nil {
				return err
			}
		}
		if out.Flush(); out.Error() != nil {
			return out.Error()
		}
		if err := buf.Flush(); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		if len(page) < exportBatch {
			return nil
		}
		var err error
		if page, err = s.page(ctx, where, page[len(page)-1]); err != nil {
			return err
		}
	}
}

// page reads the rows after a given one, or the first rows for nil.
func (s *Service) page(ctx context.Context, where []predicate.AuditEntry, after *ent.AuditEntry) ([]*ent.AuditEntry, error) {
	q := s.client.AuditEntry.Query().Where(where...)
	if after != nil {
		q.Where(auditentry.Or(auditentry.AtGT(after.At), auditentry.And(auditentry.At(after.At), auditentry.IDGT(after.ID))))
		q.Where(auditentry.AtGTE(after.At)) // lets PostgreSQL use the index on that column
	}
	return q.Order(auditentry.ByAt(), auditentry.ByID()).Limit(exportBatch).All(ctx)
}

// exportOf parses the filter of an export. Rows after now are excluded, so that an export
// ends.
func (s *Service) exportOf(ctx context.Context, q url.Values) ([]predicate.AuditEntry, error) {
	v := viewer.From(ctx)
	switch {
	case v == nil || v.IsAnonymous():
		return nil, problem.Unauthenticated("log in first")
	case v.Due == viewer.DuePassword:
		return nil, problem.Forbidden("change your password first").WithField("password")
	case v.Due != "":
		return nil, problem.Forbidden("enrol a second factor first").WithField(string(v.Due))
	}
	where := []predicate.AuditEntry{auditentry.AtLTE(time.Now())}
	for name, values := range q {
		if len(values) != 1 {
			return nil, problem.Invalid(name, "must be given only once")
		}
		p, err := condition(name, values[0])
		if err != nil {
			return nil, err
		}
		if p != nil {
			where = append(where, p)
		}
	}
	return where, nil
}

func condition(name, text string) (predicate.AuditEntry, error) {
	if text == "" {
		return nil, nil
	}
	switch name {
	case "from", "to":
		at, err := instant(text)
		if err != nil {
			return nil, problem.Invalid(name, "must be an instant such as 2026-01-31T00:00:00Z, or a day")
		}
		if name == "from" {
			return auditentry.AtGTE(at), nil
		}
		return auditentry.AtLT(at), nil
	case "domain", "project", "actor":
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, problem.Invalid(name, "is not an id")
		}
		return map[string]func(uuid.UUID) predicate.AuditEntry{
			"domain": auditentry.DomainID, "project": auditentry.ProjectID, "actor": auditentry.ActorID,
		}[name](id), nil
	case "entity":
		if !slices.Contains(access.Entities(), access.Entity(text)) {
			return nil, problem.Invalid(name, "is not a kind of object in the audit log")
		}
		return auditentry.Entity(text), nil
	case "result":
		return auditentry.Result(text), nil
	}
	return nil, problem.Invalid(name, "is not a known parameter; known are from, to, domain, project, actor, entity and result")
}

func instant(text string) (time.Time, error) {
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

var columns = []string{
	"at", "actor_id", "actor_email", "acted_as_id", "credential_id", "action", "entity", "entity_id", "domain_id",
	"project_id", "request_id", "client_address", "result", "message", "duration_us",
}

func cells(e *ent.AuditEntry) []string {
	list := []string{
		e.At.UTC().Format(time.RFC3339Nano), text(e.ActorID), e.ActorEmail, text(e.ActedAsID), text(e.CredentialID),
		e.Action, e.Entity, text(e.EntityID), text(e.DomainID), text(e.ProjectID), e.RequestID, e.ClientAddress,
		e.Result, e.Message, strconv.FormatInt(e.DurationUs, 10),
	}
	for i, c := range list {
		list[i] = csvtext.Cell(c)
	}
	return list
}

func text(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}
