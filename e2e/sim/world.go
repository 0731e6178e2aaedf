package sim

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/viewer"
)

// world is one seed's cluster.
type world struct {
	*loop
	mood mood
	calm bool // nothing goes wrong any more
	over bool // no one begins anything new

	place    *place
	plain    *ent.Client // without faults, for the simulation's own looks
	managers []*process
	machines []*machine
	people   *people
	election *election

	ctx    context.Context // of everything played
	cancel context.CancelFunc
	live   sync.WaitGroup
	log    *slog.Logger

	broken []string
}

// mood is what a seed is like: how likely each step is to go wrong.
type mood struct {
	statement float64 // the connection to the database, or the process, dies there
	slow      float64 // a transaction begins late
	lost      float64 // a message takes its tunnel with it
	hung      float64 // an answer never comes
	twice     float64 // a request is carried out again later
	late      float64 // a message takes seconds
	stall     float64 // what an agent tells takes long, and all behind it
	event     float64 // an event between managers is lost, or comes twice, or late
	image     float64 // a pull fails
	start     float64 // a container does not start
}

func (w *world) drawMood() {
	some := func(most float64) float64 {
		if w.chance(0.4) {
			return 0
		}
		return w.Float64() * most
	}
	w.mood = mood{
		statement: some(0.004), slow: some(0.05), lost: some(0.02), hung: some(0.03), twice: some(0.1), late: some(0.2), stall: some(0.02),
		event: some(0.3), image: some(0.3), start: some(0.2),
	}
}

func newWorld(seed uint64, at *place, trace io.Writer) *world {
	w := &world{loop: newLoop(seed, trace), place: at, log: slog.New(slog.DiscardHandler)}
	if trace != nil {
		w.log = slog.New(slog.NewTextHandler(trace, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.ctx, w.cancel = context.WithCancel(viewer.SystemContext(context.Background()))
	w.plain = ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, at.db)))
	w.drawMood()
	return w
}

// fail notes a broken invariant.
func (w *world) fail(rule, format string, args ...any) {
	text := fmt.Sprintf("%s at %s: ", rule, w.elapsed()) + fmt.Sprintf(format, args...)
	w.logf("BROKEN %s", text)
	w.broken = append(w.broken, text)
}

// go runs something played until the world ends.
func (w *world) play(f func()) { w.live.Go(f) }

// fence is the epoch that the database takes for the present.
func (w *world) fence() (epoch int64) {
	err := w.place.db.QueryRowContext(w.ctx, `SELECT coalesce(max(epoch), 0) FROM fences`).Scan(&epoch)
	if err != nil && err != sql.ErrNoRows {
		panic(err)
	}
	return epoch
}

//go:embed rules.sql
var rules string
