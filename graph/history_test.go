package graph_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/manager/managertest"
)

// The history of a session is returned in chronological order, whatever the order of its rows.
func TestHistoryIsInOrder(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m, ctx := w.Quiet(t), w.System(t) // loops of a manager would add to the history
	seed(t, w).more(1)
	mine := w.Client.Session.Query().Where(session.OwnerID(w.A.Member.ID)).OnlyX(ctx)
	w.Client.SessionEvent.Delete().ExecX(ctx)
	ids := []uuid.UUID{id.New(id.SessionEvent), id.New(id.SessionEvent), id.New(id.SessionEvent), id.New(id.SessionEvent)}
	for _, i := range []int{2, 0, 3, 1} {
		w.Client.SessionEvent.Create().SetID(ids[i]).SetSession(mine).SetPhase(string(rune('a' + i))).SetResult("info").SaveX(ctx)
	}
	var got struct {
		Node struct{ History []struct{ Phase string } }
	}
	m.As(t, w.A.Member).Must(t, `query($id: ID!) { node(id: $id) { ... on Session { history { phase } } } }`, managertest.Vars{"id": mine.ID}, &got)
	var phases []string
	for _, e := range got.Node.History {
		phases = append(phases, e.Phase)
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(phases, want) {
		t.Errorf("%v, want %v", phases, want)
	}
}
