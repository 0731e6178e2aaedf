package graph_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/managertest"
)

// A person, even a superadmin, sees, counts, follows and marks only their own notices.
func TestNoticesArePersonal(t *testing.T) {
	w := managertest.New(t)
	m, bus := w.Start(t), w.Bus(t)
	ctx := w.System(t)
	add := func(u *ent.User) uuid.UUID {
		n := w.Client.Notice.Create().SetKind(noticekind.SessionFailed).SetSeverity(noticekind.Error).SetUserID(u.ID).
			SetParameters(map[string]string{"name": u.Username, "reason": "x"}).SaveX(ctx)
		bus.Publish(ctx, event.Event{Topic: event.Notice, ID: u.ID})
		return n.ID
	}
	other := add(w.A.Lead)
	s := open(t, m.As(t, w.A.Member))
	s.subscribe("1", "subscription { noticeAdded { id text } }", nil)
	own := uuid.Nil
	got := make(chan string, 1)
	go func() {
		for {
			msg, err := s.read()
			if err != nil {
				return
			}
			if msg.Type == "next" {
				got <- string(msg.Payload)
				return
			}
		}
	}()
	managertest.Eventually(t, "the subscription has the person's notice", func() bool {
		own = add(w.A.Member)
		add(w.A.Lead)
		select {
		case text := <-got:
			var body struct {
				Data struct{ NoticeAdded struct{ Text string } }
			}
			if err := json.Unmarshal([]byte(text), &body); err != nil || body.Data.NoticeAdded.Text != "Session "+w.A.Member.Username+" has failed: x." {
				t.Errorf("%s: %v", text, err)
			}
			return true
		default:
			return false
		}
	})
	me, root := m.As(t, w.A.Member), m.As(t, w.Superadmin)
	var seen struct {
		UnreadNotices int
		Notices       struct {
			Edges []struct{ Node struct{ ID, Text string } }
		}
	}
	root.Must(t, `{ unreadNotices notices { edges { node { id text } } } }`, nil, &seen)
	if seen.UnreadNotices != 0 || len(seen.Notices.Edges) != 0 {
		t.Errorf("a superadmin sees %+v", seen)
	}
	var marked struct{ MarkNoticesRead struct{ Marked int } }
	me.Must(t, `mutation($ids: [ID!]) { markNoticesRead(input: {ids: $ids}) { marked } }`, managertest.Vars{"ids": []uuid.UUID{own, other}}, &marked)
	if marked.MarkNoticesRead.Marked != 1 || w.Client.Notice.GetX(ctx, other).ReadAt != nil {
		t.Errorf("%+v", marked)
	}
}
