package store

import (
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// In is sql.In with one array argument for any number of ids. PostgreSQL accepts at most 65,535
// arguments, and each number of arguments would be another statement to prepare. The list is
// compared directly, so PostgreSQL uses an index or a hash table. A join with unnest is only as
// fast if the estimates are right: where PostgreSQL expects that the other conditions leave one
// row, it unnests the list again for each of the thousands of actual rows.
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

// planEach makes PostgreSQL plan a statement with a list at each execution. A cached plan depends
// neither on the list nor on the current number of rows: a plan for few rows compares each element
// with every row, for seconds, until the statistics are updated.
func planEach(query string, args []any) []any {
	if !strings.Contains(query, "::text[]") || strings.HasPrefix(query, "INSERT") { // a new row has no other rows to join
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}
