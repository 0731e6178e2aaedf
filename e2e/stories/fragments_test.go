package stories

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Half of each of eight accelerators is free. A session that requests a whole one waits. Its reason
// says that the free capacity is fragmented, and with the suggested change the session starts at
// once.
func TestFragments(t *testing.T) {
	operator := operator(t)
	pieces := group(t, operator, "pieces", nodes())
	u := platform.User(t)
	berth := u.Shell()
	t.Cleanup(func() { endAll(t, u) })
	halve(t, u, pieces)

	whole := []string{"session", "create", "minimal:1", "--group", "pieces", "--cpu", "0.05", "--mem", "32m", "-r", "mock.shares=1"}
	try := berth.Must(append(whole, "--dry-run")...)
	mustContain(t, try, "It would wait.", "3: enough free mock.shares in total, but not on one device", "0.5 mock.shares free, 1 requested")
	var s client.Session
	read(t, berth.Must(append(whole, "--name", "whole", "-o", "json")...), &s)
	why := waits(t, u, s.ID, "ROOM")
	if len(why.Dropped) != 1 || why.Dropped[0].Check != "slot_contiguity" || why.Dropped[0].Slot != "mock.shares" || why.Dropped[0].Count != 3 {
		t.Errorf("dropped: %+v", why.Dropped)
	}
	text := berth.Must("session", "why", "whole")
	t.Logf("berth session why whole:\n%s", text)
	t.Logf("berth queue pieces:\n%s", berth.Must("queue", "pieces"))

	// The text contains the suggestion as a command.
	_, command, ok := strings.Cut(text, "  berth session change ")
	command, _, _ = strings.Cut(command, "\n")
	if !ok || !strings.Contains(command, "mock.shares=0.5") {
		t.Fatalf("no half is suggested:\n%s", text)
	}
	berth.Must(append([]string{"session", "change"}, strings.Fields(command)...)...)
	u.Until(s.ID, "RUNNING")
	for _, a := range u.Show(s.ID).Kernels[0].Allocations {
		if a.Slot == "mock.shares" && a.Amount != "0.5" {
			t.Errorf("it holds %s", a.Amount)
		}
	}
	once(t, operator)
}

// halve fills every accelerator with two halves, and ends one of the two sessions.
func halve(t *testing.T, u *cluster.User, group string) {
	t.Helper()
	var all []string
	for range 16 {
		all = append(all, u.Run(asks(group, "mock.shares", "0.5")).ID)
	}
	held := map[string]bool{}
	var second []string
	for _, id := range all {
		u.Until(id, "RUNNING")
		for _, a := range u.Show(id).Kernels[0].Allocations {
			if a.Slot != "mock.shares" || a.Device == nil {
				continue
			}
			if held[a.Device.ID] {
				second = append(second, id)
			}
			held[a.Device.ID] = true
		}
	}
	if len(held) != 8 || len(second) != 8 {
		t.Fatalf("16 halves are on %d accelerators, on %d of them two", len(held), len(second))
	}
	for _, id := range second {
		u.End(id)
	}
}
