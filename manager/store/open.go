package store

import (
	"context"
	stdsql "database/sql"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
)

// Open returns a client of the database whose lanes share one pool. If a caller leaves, the
// statements of its transaction fail as usual, but a commit that was sent is not interrupted: its
// outcome would be unknown.
func Open(db *stdsql.DB) *ent.Client {
	var p Pools
	for l := range p {
		p[l] = db
	}
	return p.Client()
}

// Client returns a client that uses the connections of the context's lane.
func (p Pools) Client() *ent.Client { return p.MeasuredClient(nil) }

// MeasuredClient returns a client whose statements are measured for a registry.
func (p Pools) MeasuredClient(to prometheus.Registerer) *ent.Client {
	d := &pooled{pools: p, meter: newMeter(to)}
	if most := p[Requests].Stats().MaxOpenConnections; most > 0 {
		d.shares.most = shareOf(most)
	}
	for l, db := range p {
		d.lanes[l] = sql.OpenDB(dialect.Postgres, db)
	}
	return ent.NewClient(ent.Driver(d))
}

// pooled is a driver that chooses a pool by the context. It limits every statement, and sets the
// class of errors of an unreachable database.
type pooled struct {
	pools Pools
	meter *meter
	lanes [lanes]*sql.Driver
	shares
}

func (d *pooled) Dialect() string { return dialect.Postgres }

// Close closes each pool once.
func (d *pooled) Close() error { return d.pools.Close() }

func (d *pooled) lane(ctx context.Context) *sql.Driver { return d.lanes[laneOf(ctx)] }

func (d *pooled) Exec(ctx context.Context, query string, args, v any) error {
	giveBack, err := d.take(ctx, reading)
	if err != nil {
		return err
	}
	defer giveBack()
	return d.meter.exec(ctx, d.lane(ctx), query, args, v)
}

func (d *pooled) Query(ctx context.Context, query string, args, v any) error {
	giveBack, err := d.take(ctx, reading)
	if err != nil {
		return err
	}
	return d.meter.query(ctx, d.lane(ctx), query, args, v, giveBack)
}

// ExecContext runs handwritten statements.
func (d *pooled) ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error) {
	bounded, cancel := context.WithTimeout(ctx, statementTimeout(ctx))
	defer cancel()
	begun := time.Now()
	res, err := d.lane(ctx).ExecContext(bounded, query, planEach(query, args)...)
	d.meter.done(ctx, begun, err)
	return res, explain(ctx, err)
}

// QueryContext runs handwritten queries.
func (d *pooled) QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error) {
	return d.meter.queryByHand(ctx, d.lane(ctx), query, args)
}

func (d *pooled) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

// BeginTx begins a transaction that outlives the context of its caller. The end of that context
// only ends the wait for a connection.
func (d *pooled) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	waiting, stopWaiting := context.WithTimeout(ctx, statementTimeout(ctx))
	defer stopWaiting()
	giveBack, err := d.take(ctx, changing)
	if err != nil {
		return nil, err
	}
	kept, stopped := context.WithCancel(context.WithoutCancel(ctx))
	end := func() { stopped(); giveBack() }
	stop := context.AfterFunc(waiting, end)
	begun, err := d.lane(ctx).BeginTx(kept, opts)
	if !stop() && err == nil {
		_ = begun.Rollback()
		err = context.Cause(waiting)
	}
	if err != nil {
		end()
		if cause := ctx.Err(); cause != nil {
			return nil, cause
		}
		if waiting.Err() != nil {
			return nil, explain(ctx, waiting.Err())
		}
		return nil, explain(ctx, err)
	}
	return &tx{Tx: begun.(*sql.Tx), meter: d.meter, end: end}, nil
}

// tx is a transaction whose statements have a time limit.
type tx struct {
	*sql.Tx
	meter *meter
	end   context.CancelFunc
}

func (t *tx) Exec(ctx context.Context, query string, args, v any) error {
	return t.meter.exec(ctx, t.Tx, query, args, v)
}

func (t *tx) Query(ctx context.Context, query string, args, v any) error {
	return t.meter.query(ctx, t.Tx, query, args, v, func() {})
}

// ExecContext runs handwritten statements.
func (t *tx) ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error) {
	bounded, cancel := context.WithTimeout(ctx, statementTimeout(ctx))
	defer cancel()
	begun := time.Now()
	res, err := t.Tx.ExecContext(bounded, query, planEach(query, args)...)
	t.meter.done(ctx, begun, err)
	return res, explain(ctx, err)
}

// QueryContext runs handwritten queries.
func (t *tx) QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error) {
	return t.meter.queryByHand(ctx, t.Tx, query, args)
}

// queryByHand limits a query whose rows are database/sql's own: their end is not reported, so the
// limit ends by itself.
func (m *meter) queryByHand(ctx context.Context, on sql.ExecQuerier, query string, args []any) (*stdsql.Rows, error) {
	bounded, end := context.WithTimeout(ctx, statementTimeout(ctx))
	begun := time.Now()
	rows, err := on.QueryContext(bounded, query, planEach(query, args)...)
	m.done(ctx, begun, err)
	if err != nil {
		end()
		return nil, explain(ctx, err)
	}
	context.AfterFunc(bounded, end)
	return rows, nil
}

// commitTimeout limits a commit. An interrupted commit may have succeeded.
const commitTimeout = 30 * time.Second

func (t *tx) Commit() error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	defer t.end()
	stop := context.AfterFunc(ctx, t.end)
	err := t.Tx.Commit()
	if !stop() && err != nil {
		err = ctx.Err()
	}
	return explain(context.Background(), err)
}

func (t *tx) Rollback() error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	defer t.end()
	defer context.AfterFunc(ctx, t.end)()
	return t.Tx.Rollback()
}

func (m *meter) exec(ctx context.Context, on dialect.ExecQuerier, query string, args, v any) error {
	bounded, cancel := context.WithTimeout(ctx, statementTimeout(ctx))
	defer cancel()
	if list, ok := args.([]any); ok {
		query, list = joinIDs(query, list)
		args = planEach(query, list)
	}
	begun := time.Now()
	err := on.Exec(bounded, query, args, v)
	m.done(ctx, begun, err)
	return explain(ctx, err)
}

// query calls done when the rows are closed, or at once if there are none.
func (m *meter) query(ctx context.Context, on dialect.ExecQuerier, query string, args, v any, done func()) error {
	bounded, stop := context.WithTimeout(ctx, statementTimeout(ctx))
	cancel := func() { stop(); done() }
	if list, ok := args.([]any); ok {
		query, list = joinIDs(query, list)
		args = planEach(query, list)
	}
	begun := time.Now()
	err := on.Query(bounded, query, args, v)
	m.done(ctx, begun, err)
	out, ok := v.(*sql.Rows)
	if err != nil || !ok {
		cancel()
		return explain(ctx, err)
	}
	out.ColumnScanner = &rows{out.ColumnScanner, ctx, cancel}
	return nil
}

// rows end the time limit of their statement when they are closed.
type rows struct {
	sql.ColumnScanner
	ctx    context.Context
	cancel context.CancelFunc
}

func (r *rows) Close() error {
	defer r.cancel()
	return r.ColumnScanner.Close()
}

func (r *rows) Err() error { return explain(r.ctx, r.ColumnScanner.Err()) }
