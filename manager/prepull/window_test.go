package prepull

import (
	"testing"
	"time"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start, end, zone, now string
		open                  bool
		change                string
	}{
		"before":                           {"02:00", "05:00", "", "2026-11-27T01:59:59Z", false, "2026-11-27T02:00:00Z"},
		"at the start":                     {"02:00", "05:00", "", "2026-11-27T02:00:00Z", true, "2026-11-27T05:00:00Z"},
		"at the end":                       {"02:00", "05:00", "", "2026-11-27T05:00:00Z", false, "2026-11-28T02:00:00Z"},
		"over midnight, in the evening":    {"22:00", "04:30", "", "2026-11-27T23:00:00Z", true, "2026-11-28T04:30:00Z"},
		"over midnight, in the morning":    {"22:00", "04:30", "", "2026-11-27T04:29:00Z", true, "2026-11-27T04:30:00Z"},
		"over midnight, at noon":           {"22:00", "04:30", "", "2026-11-27T12:00:00Z", false, "2026-11-27T22:00:00Z"},
		"in another zone":                  {"02:00", "05:00", "Europe/Berlin", "2026-11-27T01:30:00Z", true, "2026-11-27T04:00:00Z"},
		"the day with 25 hours":            {"01:00", "04:00", "Europe/Berlin", "2026-10-24T23:30:00Z", true, "2026-10-25T03:00:00Z"},
		"a start that the clock skips":     {"02:30", "05:00", "Europe/Berlin", "2026-03-29T00:00:00Z", false, "2026-03-29T01:30:00Z"},
		"the next day is in another month": {"02:00", "05:00", "Asia/Seoul", "2026-11-30T20:00:00Z", false, "2026-12-01T17:00:00Z"},
	} {
		w, err := (&PrepullWindowInput{Start: c.start, End: c.end, TimeZone: &c.zone}).parse()
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		open, change, err := w.at(now)
		if err != nil || open != c.open || change.UTC().Format(time.RFC3339) != c.change {
			t.Errorf("%s: open %t until %s, %v, want %t until %s", name, open, change.UTC().Format(time.RFC3339), err, c.open, c.change)
		}
	}
}

func TestWindowsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []PrepullWindowInput{
		{Start: "2", End: "05:00"}, {Start: "02:00", End: "24:00"}, {Start: "02:00", End: "02:00"},
		{Start: "02:00", End: "05:00", TimeZone: new("Mars/Base")}, {Start: "02:00", End: "05:00", TimeZone: new("Local")},
		{Start: "02:00", End: "05:00", TimeZone: new("../../etc/passwd")},
	} {
		if w, err := c.parse(); err == nil {
			t.Errorf("%+v is %+v", c, w)
		}
	}
}
