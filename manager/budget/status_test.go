package budget

import (
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
)

// Months begin in the time zone of the budget, also where clocks change.
func TestPeriod(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	b := &ent.Budget{Period: "month", StartsAt: begun, TimeZone: "Europe/Berlin"}
	for _, one := range []struct {
		now, from, to time.Time
		active        bool
	}{
		{begun.Add(-time.Hour), begun, time.Date(2026, 2, 1, 0, 0, 0, 0, berlin), false},
		{begun.Add(time.Hour), begun, time.Date(2026, 2, 1, 0, 0, 0, 0, berlin), true},
		{time.Date(2026, 3, 31, 23, 30, 0, 0, time.UTC), time.Date(2026, 4, 1, 0, 0, 0, 0, berlin), time.Date(2026, 5, 1, 0, 0, 0, 0, berlin), true},
		{time.Date(2026, 10, 31, 22, 30, 0, 0, time.UTC), time.Date(2026, 10, 1, 0, 0, 0, 0, berlin), time.Date(2026, 11, 1, 0, 0, 0, 0, berlin), true},
	} {
		if p := periodOf(b, one.now); !p.from.Equal(one.from) || !p.to.Equal(one.to) || p.active != one.active {
			t.Errorf("at %s: %+v", one.now, p)
		}
	}
	end := begun.AddDate(0, 1, 0)
	total := &ent.Budget{Period: "total", StartsAt: begun, EndsAt: &end}
	for now, active := range map[time.Time]bool{begun: true, end.Add(-1): true, end: false, begun.Add(-1): false} {
		if p := periodOf(total, now); p.active != active || !p.from.Equal(begun) {
			t.Errorf("at %s: %+v", now, p)
		}
	}
}
