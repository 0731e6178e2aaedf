package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

func TestHowSessionsEnd(t *testing.T) {
	c := clustertest.New(t, 1)
	for _, one := range []struct {
		name    string
		in      managertest.Vars
		status  lifecycle.Status
		reason  session.TerminationReason
		outcome session.Result
		exit    int
		history string // text that the history contains
		events  int    // number of events of the kind retry
	}{
		{"well", clustertest.SessionInput(nil, "exit", "0"), lifecycle.Terminated, "completed", "success", 0, "", 0},
		{"with an exit code", clustertest.SessionInput(nil, "exit", "3"), lifecycle.Terminated, "failed", "failure", 3, "exit code 3", 0},
		{"out of memory", clustertest.SessionInput(nil, "alloc", "4096"), lifecycle.Terminated, "out_of_memory", "failure", 137, "", 0},
		{"not created", clustertest.SessionInput(clustertest.Environment("FAKE_FAIL_CREATE", "no space"), "sleep", "60"), lifecycle.Error, "start_failed", "failure", -1, "no space", 2},
		{"not started", clustertest.SessionInput(clustertest.Environment("FAKE_FAIL_START", "no such file"), "sleep", "60"), lifecycle.Error, "start_failed", "failure", -1, "no such file", 2},
		{"refused", clustertest.SessionInput(clustertest.Environment("FAKE_REFUSE", "host IPC is not allowed"), "sleep", "60"), lifecycle.Error, "start_failed", "failure", -1, "host IPC is not allowed", 0},
		{"without its image", clustertest.SessionInput(managertest.Vars{"image": "gone:latest"}, "exit", "0"), lifecycle.Error, "image_pull_failed", "failure", -1, "gone", 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			id := c.Create(t, one.in)
			s := c.WaitForEnd(t, id)
			history := c.History(t, id)
			if s.Status != one.status || s.TerminationReason == nil || *s.TerminationReason != one.reason || s.Result != one.outcome {
				t.Errorf("%s, reason %v, %s: want %s %s %s\n%s", s.Status, s.TerminationReason, s.Result, one.status, one.reason, one.outcome, history)
			}
			if one.exit >= 0 && (s.ExitCode == nil || *s.ExitCode != one.exit) {
				t.Errorf("exit code %v, want %d", s.ExitCode, one.exit)
			}
			if !strings.Contains(history, one.history) || strings.Count(history, "retry creating→pending") != one.events {
				t.Errorf("no %q or not %d retries in\n%s", one.history, one.events, history)
			}
		})
	}
	c.CheckInvariants(t, true)
}

func TestTerminateAtAnyMoment(t *testing.T) {
	c := clustertest.New(t, 1)
	for i := range 40 {
		slow := clustertest.Environment("FAKE_CREATE_DELAY", fmt.Sprintf("%dms", i%5*20))
		command := []string{"sleep", "600"}
		if i%4 == 3 {
			command = []string{"ignore-term"}
		}
		id := c.Create(t, clustertest.SessionInput(slow, command...))
		// The number of polls grows, so that the end comes before the placement, well after the
		// start, and at times between.
		for range i * 2 {
			c.Session(t, id)
		}
		if errs := c.Terminate(t, id, i%2 == 1 || i%4 == 3); len(errs) > 0 {
			t.Errorf("round %d: %s", i, errs)
		}
		if i%10 == 9 {
			c.CheckInvariants(t, false)
		}
	}
	for _, s := range c.Client.Session.Query().AllX(c.System(t)) {
		got := c.WaitForEnd(t, s.ID)
		if got.Status == lifecycle.Error || *got.TerminationReason != session.TerminationReasonUserRequested {
			t.Errorf("%s %v\n%s", got.Status, got.TerminationReason, c.History(t, s.ID))
		}
	}
	c.CheckInvariants(t, true)
}

func TestTerminateIsRepeatable(t *testing.T) {
	c := clustertest.New(t, 1)
	id := c.Create(t, clustertest.SessionInput(nil, "ignore-term"))
	c.WaitFor(t, id, lifecycle.Running)
	for range 3 {
		if errs := c.Terminate(t, id, false); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	if s := c.Session(t, id); s.Status != lifecycle.Terminating {
		t.Fatalf("%s, want terminating: it does not heed SIGTERM", s.Status)
	}
	// A forced end does not wait for the grace period. It still waits until the container has
	// ended.
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Terminated || s.StatusMessage != "ended by its user" {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Error(errs)
	}
	c.CheckInvariants(t, true)
}

func TestDeadlines(t *testing.T) {
	c := clustertest.New(t, 1)
	expire := func(s lifecycle.Status) {
		managertest.Eventually(t, "deadline of "+string(s), func() bool {
			n := c.Client.Session.Update().Where(session.StatusEQ(s)).SetDeadlineAt(c.A.CreatedAt).SaveX(c.System(t))
			return n > 0
		})
	}
	id := c.Create(t, clustertest.SessionInput(clustertest.Environment("FAKE_CREATE_DELAY", "10m"), "sleep", "600"))
	for range 3 {
		c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(c.System(t))
		c.WaitFor(t, id, lifecycle.Creating)
		expire(lifecycle.Creating)
		managertest.Eventually(t, "attempt ends", func() bool {
			c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(c.System(t))
			s := c.Session(t, id)
			return s.Status != lifecycle.Creating || s.DeadlineAt.After(c.A.CreatedAt)
		})
	}
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonDeadlineExceeded {
		t.Errorf("%s %v\n%s", s.Status, s.TerminationReason, c.History(t, id))
	}
	c.CheckInvariants(t, true)
}

func TestUsageIsWhatWasHeld(t *testing.T) {
	c := clustertest.New(t, 1)
	id := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	c.WaitForEnd(t, id)
	ctx := c.System(t)
	// The allocations look as if they existed for 100 s.
	for _, a := range c.Client.Allocation.Query().Where(allocation.SessionID(id)).AllX(ctx) {
		c.Client.Allocation.UpdateOne(a).SetFreedAt(a.CreatedAt.Add(100e9)).ExecX(ctx)
	}
	var got struct {
		Usage []struct{ Slot, SlotSeconds string }
		Node  struct {
			Usage []struct{ Slot, SlotSeconds string }
		}
	}
	const q = `query($id: ID!) { usage { slot slotSeconds } node(id: $id) { ... on Session { usage { slot slotSeconds } } } }`
	c.Member.Must(t, q, managertest.Vars{"id": id}, &got)
	want := `[{cpu 5} {mem 1677721600}]` // 0.05 × 100, 16 MiB × 100
	if fmt.Sprint(got.Usage) != want || fmt.Sprint(got.Node.Usage) != want {
		t.Errorf("usage %v and %v, want %s", got.Usage, got.Node.Usage, want)
	}
	if c.Manager.As(t, c.B.Admin).Must(t, q, managertest.Vars{"id": id}, &got); len(got.Usage) > 0 {
		t.Errorf("another domain sees %v", got.Usage)
	}
}
