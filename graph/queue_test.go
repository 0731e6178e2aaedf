package graph_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// waiting adds a session that waits for a resource that no agent has.
func waiting(t *testing.T, w *managertest.World, owner *ent.User, name string) *ent.Session {
	c, ctx := w.Client, w.System(t)
	img := c.Image.Query().FirstX(ctx)
	s := c.Session.Create().SetName(name).SetType("batch").SetSlots(resource.Slots{"nothing": 1}).SetPending(&report.Pending{Summary: "not looked at"}).
		SetDomainID(w.A.ID).SetProject(w.A.Project).SetOwner(owner).SetResourceGroup(w.Group).SetImage(img).SaveX(ctx)
	c.Kernel.Create().SetSession(s).SetSlots(resource.Slots{"nothing": 1}).SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(owner.ID).ExecX(ctx)
	return s
}

func anImage(t *testing.T, w *managertest.World) {
	c, ctx := w.Client, w.System(t)
	reg := c.Registry.Create().SetName("r").SetHost("r").SaveX(ctx)
	c.Image.Create().SetReference("r/i").SetName("i").SetArchitecture("amd64").SetDigest("sha256:1").SetRegistry(reg).ExecX(ctx)
}

// A subscription gets the reason why a session waits as soon as it changes, and the queue as well.
// Viewers who cannot see the session get nothing that identifies its owner.
func TestReasonsAndQueuesArePushed(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	anImage(t, w)
	m := w.Start(t)
	defer m.Stop()
	own, stranger := open(t, m.As(t, w.A.Member)), open(t, m.As(t, w.B.Member))
	const queue = `subscription($id: ID!) { queueChanged(resourceGroup: $id) { totalCount entries { position mine stage why session { id name } } } }`
	stranger.subscribe("q", queue, managertest.Vars{"id": w.Group.ID})
	if got := stranger.next(); got.Type != "next" || string(got.Payload) == "" {
		t.Fatalf("the queue as it is: %+v", got)
	}
	s := waiting(t, w, w.A.Member, "secretive")
	bus := w.Bus(t)
	own.subscribe("s", `subscription($id: ID!) { sessionChanged(id: $id) { pending { stage summary position } } }`, managertest.Vars{"id": s.ID})
	bus.Publish(t.Context(), event.Event{Topic: event.Pending})
	for {
		var got struct {
			Data struct {
				SessionChanged struct {
					Pending struct {
						Stage, Summary string
						Position       int
					}
				}
			}
		}
		read(t, own, &got)
		if p := got.Data.SessionChanged.Pending; p.Stage == "ROOM" && p.Position == 1 {
			break
		}
	}
	for {
		var got struct {
			Data struct {
				QueueChanged struct {
					TotalCount int
					Entries    []struct {
						Position   int
						Mine       bool
						Stage, Why string
						Session    *struct{ ID, Name string }
					}
				}
			}
		}
		read(t, stranger, &got)
		if q := got.Data.QueueChanged; q.TotalCount == 1 {
			if e := q.Entries[0]; e.Position != 1 || e.Mine || e.Session != nil || e.Why != "It waits for free capacity." {
				t.Errorf("another user gets %+v", e)
			}
			break
		}
	}
}

func read(t *testing.T, s *socket, into any) {
	t.Helper()
	got := s.next()
	if got.Type != "next" {
		t.Fatalf("%+v", got)
	}
	if err := json.Unmarshal(got.Payload, into); err != nil {
		t.Fatal(err)
	}
}

// The number of statements of a queue does not depend on its length.
func TestStatementsOfAQueue(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	anImage(t, w)
	m := w.Quiet(t)
	as := m.As(t, w.A.Member)
	const q = `{ resourceGroups { edges { node { queue { totalCount entries { position why session { name owner { email } } } } } } }
  sessions(first: 5) { edges { node { pending { position ahead(first: 5) { session { name } } suggestions { text } } } } } }`
	n := 0
	fewest := func(sessions int) (fewest []string) {
		for ; n < sessions; n++ {
			waiting(t, w, w.A.Member, fmt.Sprint("s", n))
		}
		managertest.Eventually(t, "the queue is read again", func() bool {
			var got struct {
				ResourceGroups struct {
					Edges []struct {
						Node struct{ Queue struct{ TotalCount int } }
					}
				}
			}
			list := w.Statements.Of(func() { as.Must(t, q, nil, &got) })
			if fewest == nil || len(list) < len(fewest) {
				fewest = list
			}
			return got.ResourceGroups.Edges[0].Node.Queue.TotalCount == sessions
		})
		for range 10 { // a loader's batch may be split on a busy machine
			if list := w.Statements.Of(func() { as.Must(t, q, nil, nil) }); len(list) < len(fewest) {
				fewest = list
			}
		}
		return fewest
	}
	few, many := fewest(5), fewest(40)
	if len(many) > len(few) {
		t.Errorf("%d statements become %d:\n%v", len(few), len(many), many)
	}
	if errs := as.Ask(t, `{ sessions(first: 40) { edges { node { pending { suggestions { text } } } } } }`, nil, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("suggestions for 40 sessions: %s", errs)
	}
	if errs := as.Ask(t, `query($id: ID!) { node(id: $id) { ... on ResourceGroup { queue(after: "§") { totalCount } } } }`, managertest.Vars{"id": w.Group.ID}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("a cursor that is none: %s", errs)
	}
	pages(t, as, w.Group.ID, 40)
}

// pages reads a queue page by page.
func pages(t *testing.T, as *managertest.Client, group uuid.UUID, want int) {
	t.Helper()
	seen, after := 0, (*string)(nil)
	for {
		var got struct {
			Node struct {
				Queue struct {
					Entries   []struct{ Position int }
					EndCursor *string
				}
			}
		}
		as.Must(t, `query($id: ID!, $after: String) { node(id: $id) { ... on ResourceGroup { queue(first: 15, after: $after) { endCursor entries { position } } } } }`,
			managertest.Vars{"id": group, "after": after}, &got)
		for _, e := range got.Node.Queue.Entries {
			if seen++; e.Position != seen {
				t.Errorf("position %d at %d", e.Position, seen)
			}
		}
		if after = got.Node.Queue.EndCursor; after == nil {
			break
		}
	}
	if seen != want {
		t.Errorf("%d in all pages, want %d", seen, want)
	}
}
