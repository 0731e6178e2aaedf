package problem

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The error codes of PostgreSQL that users can act on.
const (
	notNullViolation     = "23502"
	foreignKeyViolation  = "23503"
	uniqueViolation      = "23505"
	checkViolation       = "23514"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	textNotStorable      = "22021" // a NUL byte
	queryCanceled        = "57014" // by statement_timeout
)

// databaseRetry is when a request should be repeated that found the database out of resources,
// shutting down or starting.
const databaseRetry = 3 * time.Second

// fromDatabase explains a violated constraint. The text of the database names tables and values, so
// none of it is passed on.
func fromDatabase(err error) (Problem, bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return Problem{}, false
	}
	switch pg.Code {
	case uniqueViolation:
		field := uniqueField(pg.TableName, pg.ConstraintName)
		return Problem{Code: CodeAlreadyExists, Message: "this " + words(field, "value") + " is taken", Field: field}, true
	case foreignKeyViolation:
		if strings.Contains(pg.Message, "update or delete") {
			return Problem{Code: CodeFailedPrecondition, Message: "it is still in use"}, true
		}
		return Problem{Code: CodeNotFound, Message: "an object that it refers to does not exist"}, true
	case notNullViolation, checkViolation:
		return Problem{Code: CodeInvalidArgument, Message: "a value is missing or not allowed", Field: camel(pg.ColumnName)}, true
	case textNotStorable:
		return Problem{Code: CodeInvalidArgument, Message: "text must be UTF-8 without NUL"}, true
	case queryCanceled:
		return Problem{Code: CodeDeadlineExceeded, Message: "the request took too long"}, true
	case serializationFailure, deadlockDetected:
		return Problem{Code: CodeAborted, Message: "another request changed the same object; try again"}, true
	}
	if unavailable(pg.Code) {
		return Problem{Code: CodeUnavailable, Message: "the database cannot do this now", RetryAfter: databaseRetry}, true
	}
	return Problem{}, false
}

// unavailable reports whether a state says that the database cannot serve now:
// its disk, memory or connections are used up (class 53), the connection is broken
// (class 08), or it shuts down or starts (57P01 to 57P03).
func unavailable(code string) bool {
	return strings.HasPrefix(code, "53") || strings.HasPrefix(code, "08") || code == "57P01" || code == "57P02" || code == "57P03"
}

// uniqueField guesses the input's field from the index: users_email_key is email of users,
// project_domain_id_name ends in the column that a person chose.
func uniqueField(table, index string) string {
	if column, ok := strings.CutPrefix(index, table+"_"); ok {
		return camel(strings.TrimSuffix(column, "_key"))
	}
	for _, column := range []string{"idempotency_key", "reference", "name", "email", "username", "host", "target"} {
		if strings.Contains(index+"_", "_"+column+"_") {
			return camel(column)
		}
	}
	return ""
}

func words(field, otherwise string) string {
	if field == "" {
		return otherwise
	}
	return field
}

// camel turns a column into the name of the API's field.
func camel(column string) string {
	parts := strings.Split(column, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}
