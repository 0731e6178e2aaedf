package store

import (
	"context"
	stdsql "database/sql"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
)

// Open returns a client of the database. When a caller goes away, statements of
// his transaction fail as usual, but a commit on its way is not cut off: it may
// have happened, and nobody would be told.
func Open(db *stdsql.DB) *ent.Client {
	return ent.NewClient(ent.Driver(&whole{sql.OpenDB(dialect.Postgres, db)}))
}

// whole begins transactions that outlive the context of who began them.
type whole struct{ *sql.Driver }

func (d *whole) Tx(ctx context.Context) (dialect.Tx, error) {
	return d.Driver.Tx(context.WithoutCancel(ctx))
}

func (d *whole) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	return d.Driver.BeginTx(context.WithoutCancel(ctx), opts)
}
