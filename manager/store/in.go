package store

import (
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
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
