package store

import (
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// In is sql.In with one argument however many ids there are: PostgreSQL takes
// 65,535 arguments, and a statement of another length is another statement. It is
// joined: a list that a prepared plan compares with every row takes the product of
// both.
func In(column string, ids []uuid.UUID) *sql.Predicate {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return sql.P(func(b *sql.Builder) {
		b.WriteString(column).WriteString(" IN (SELECT unnest(").Arg(texts).WriteString("::text[]::uuid[]))")
	})
}

// planEach has PostgreSQL plan a statement each time that joins a list to a table. A
// plan that PostgreSQL keeps fits the rows of its moment: made while there were few, it
// compares each element with every row, for seconds, until the rows are counted again.
func planEach(query string, args []any) []any {
	if !strings.Contains(query, "unnest(") || strings.HasPrefix(query, "INSERT") { // new rows are joined to nothing
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}
