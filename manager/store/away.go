package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthhq/berth/internal/problem"
)

// retryAfter is when a request should be repeated that found the database unreachable: a restart of
// PostgreSQL takes about that long.
const retryAfter = 3 * time.Second

// explain gives errors of a database that cannot be reached, or that does not answer within a
// statement's time limit, the class UNAVAILABLE. An error because of the caller's own context stays
// unchanged.
func explain(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return problem.Unavailable("the database does not answer").RetryAfter(retryAfter).Because(err)
	case away(err):
		return problem.Unavailable("the database cannot be reached").RetryAfter(retryAfter).Because(err)
	}
	return err
}

// away reports whether err is about the connection and not about the statement. PostgreSQL's own
// errors have their class in internal/problem.
func away(err error) bool {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return false
	}
	var refused *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &refused) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
