package sim

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5/pgconn"
)

// statements is the connection of one manager's process to the database. A statement, or a whole
// transaction, is one step: transactions never wait for locks of others here, because only one is
// open at a time. The connection can be lost before or after any statement, and the process can die
// there.
type statements struct {
	*entsql.Driver
	p *process
}

var (
	errGone = errors.New("the process is dead")
	errLost = fmt.Errorf("connection lost: %w", io.ErrUnexpectedEOF)
)

// fate is the fate of a statement.
type fate int

const (
	fine       fate = iota
	notDone         // the connection was lost before
	notTold         // it was executed, and the answer was lost
	diesBefore      // the process dies before
	diesAfter
)

func (p *process) fate() fate {
	w := p.w
	if w.calm || !w.chance(w.mood.statement) {
		return fine
	}
	f := notDone
	switch n := w.IntN(10); {
	case n < 4:
	case n < 7:
		f = notTold
	case n < 8:
		f = diesBefore
	default:
		f = diesAfter
	}
	w.logf("%s: fate %d", p.name, f)
	return f
}

// turn waits until the process can continue. It returns an error if the process is dead, or if the
// context of the caller has ended.
func (p *process) turn(ctx context.Context, key string, detail ...string) error {
	if p.dead {
		return errGone
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := p.w.enterFor(ctx, p.name+" "+key, detail...)
	if p.dead {
		return errGone
	}
	return err
}

// do executes one statement according to its fate.
func (p *process) do(ctx context.Context, run func() error) error {
	f := p.fate()
	switch f {
	case diesBefore:
		p.die()
		return errGone
	case notDone:
		return errLost
	}
	if err := run(); err != nil {
		return p.w.judge(err)
	}
	switch f {
	case diesAfter:
		p.die()
		return errGone
	case notTold:
		return errLost
	}
	return nil
}

func (s *statements) step(ctx context.Context, query string, args any, run func() error) error {
	if err := s.p.turn(ctx, query, s.p.w.brief(args)); err != nil {
		return err
	}
	return s.p.do(ctx, func() error {
		err := run()
		if err == nil {
			s.p.w.wrote(ctx, s.p, query)
		}
		return err
	})
}

// errUnchanged is the error of a statement that was executed and changed nothing.
var errUnchanged = errors.New("nothing was changed")

func (w *world) brief(args any) string {
	const long = 400
	text := fmt.Sprint(args)
	return text[:min(len(text), long)]
}

// Exec implements dialect.Driver.
func (s *statements) Exec(ctx context.Context, query string, args, v any) error {
	return s.step(ctx, query, args, func() error { return s.Driver.Exec(ctx, query, args, v) })
}

// Query implements dialect.Driver.
func (s *statements) Query(ctx context.Context, query string, args, v any) error {
	return s.step(ctx, query, args, func() error { return s.Driver.Query(ctx, query, args, v) })
}

// ExecContext is for statements that ent does not build.
func (s *statements) ExecContext(ctx context.Context, query string, args ...any) (r stdsql.Result, err error) {
	err = s.step(ctx, query, args, func() error {
		if r, err = s.Driver.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err == nil && n == 0 {
			return errUnchanged // expected from a replaced leader
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	return r, err
}

// QueryContext is for statements that ent does not build.
func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (r *stdsql.Rows, err error) {
	err = s.step(ctx, query, args, func() error { r, err = s.Driver.QueryContext(ctx, query, args...); return err })
	return r, err
}

// Tx implements dialect.Driver.
func (s *statements) Tx(ctx context.Context) (dialect.Tx, error) { return s.BeginTx(ctx, nil) }

// longest is the maximum delay of a transaction.
const longest = 15 * time.Second

// BeginTx begins a transaction, sometimes with a long delay, during which the caller does not read
// the clock again.
func (s *statements) BeginTx(ctx context.Context, opts *entsql.TxOptions) (dialect.Tx, error) {
	w := s.p.w
	if err := s.p.turn(ctx, "begin", origin()); err != nil {
		return nil, err
	}
	if !w.calm && w.chance(w.mood.slow) {
		d := w.between(200*time.Millisecond, longest)
		w.logf("%s: transaction waits %s", s.p.name, d.Round(time.Millisecond))
		if err := sleep(ctx, d); err != nil {
			return nil, err
		}
		if err := s.p.turn(ctx, "begin late", origin()); err != nil {
			return nil, err
		}
	}
	tx, err := s.Driver.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &transaction{Tx: tx.(*entsql.Tx), p: s.p, ctx: ctx}, nil
}

// origin returns the functions of services that begin a transaction.
func origin() string {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var names []string
	for {
		f, more := frames.Next()
		if _, name, ok := strings.Cut(f.Function, "/manager/"); ok && len(names) < 6 {
			names = append(names, name)
		}
		if !more {
			return strings.Join(names, " < ")
		}
	}
}

// transaction keeps the turn from its beginning to its end.
type transaction struct {
	*entsql.Tx
	p      *process
	ctx    context.Context
	wrote  []string
	broken error // the connection is gone
}

// step executes one statement. If the connection or the process is lost, uncommitted changes are
// lost.
func (t *transaction) step(query string, run func() error) error {
	if t.broken != nil {
		return t.broken
	}
	if t.p.w.trace != nil {
		t.p.w.note("    ", query)
	}
	err := errGone
	if !t.p.dead {
		err = t.p.do(t.ctx, func() error {
			err := run()
			if err == nil {
				t.wrote = append(t.wrote, query)
			}
			return err
		})
	}
	if errors.Is(err, errLost) || errors.Is(err, errGone) {
		t.broken = err
		_ = t.Tx.Rollback() // no effect after a commit
	}
	return err
}

// Exec implements dialect.Tx.
func (t *transaction) Exec(ctx context.Context, query string, args, v any) error {
	return t.step(query, func() error { return t.Tx.Exec(ctx, query, args, v) })
}

// Query implements dialect.Tx.
func (t *transaction) Query(ctx context.Context, query string, args, v any) error {
	return t.step(query, func() error { return t.Tx.Query(ctx, query, args, v) })
}

// ExecContext is for statements that ent does not build.
func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (r stdsql.Result, err error) {
	err = t.step(query, func() error { r, err = t.Tx.ExecContext(ctx, query, args...); return err })
	return r, err
}

// QueryContext is for statements that ent does not build.
func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (r *stdsql.Rows, err error) {
	err = t.step(query, func() error { r, err = t.Tx.QueryContext(ctx, query, args...); return err })
	return r, err
}

// Commit implements dialect.Tx.
func (t *transaction) Commit() error {
	return t.step("commit", func() error {
		err := t.Tx.Commit()
		for _, q := range t.wrote {
			if err == nil {
				t.p.w.wrote(t.ctx, t.p, q)
			}
		}
		return err
	})
}

// guarded matches changes of the tables that only the current leader may change, except for
// requests of users.
var guarded = regexp.MustCompile(`\b(?:INSERT INTO|UPDATE|DELETE FROM) "?(sessions|kernels|allocations|session_events|session_dependencies)\b`)

// wrote checks which manager has changed which table.
func (w *world) wrote(ctx context.Context, p *process, query string) {
	t, _ := ctx.Value(termKey{}).(*term)
	if t == nil || !guarded.MatchString(query) || strings.Contains(query, `"last_stats"`) {
		return
	}
	if now := w.fence(); t.epoch < now {
		w.fail("I9", "%s changed something in epoch %d, when it was %d: %s", p.name, t.epoch, now, query)
	}
}

// judge reads the violations of invariants that the database itself has recorded.
func (w *world) judge(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "SIM") {
		w.fail(refused.Hint, "%s", refused.Message)
	}
	return err
}
