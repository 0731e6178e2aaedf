package store

import (
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// In is sql.In with one argument however many ids there are: PostgreSQL takes
// 65,535 arguments, and a statement of another length is another statement.
//
// It compares with the list itself, which PostgreSQL looks up in an index or in a hash
// table. A join with unnest is as quick only while the estimates are right: where
// PostgreSQL expects that the other conditions leave one row, it unnests the list again
// for each of the thousands that there are.
func In(column string, ids []uuid.UUID) *sql.Predicate {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return sql.P(func(b *sql.Builder) {
		b.WriteString(column).WriteString(" = ANY (").Arg(texts).WriteString("::text[]::uuid[])")
	})
}

// planEach has PostgreSQL plan a statement each time that has a list. A plan that
// PostgreSQL keeps knows neither the list nor how many rows there are by now: made while
// there were few, it compares each element with every row, for seconds, until the rows
// are counted again.
func planEach(query string, args []any) []any {
	if !strings.Contains(query, "::text[]") || strings.HasPrefix(query, "INSERT") { // new rows are joined to nothing
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}
