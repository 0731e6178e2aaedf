package prepull

import (
	"fmt"
	"time"
	_ "time/tzdata" // managers run on machines without a database of time zones

	"github.com/berthhq/berth/internal/problem"
)

// PrepullWindowInput is a range of times of the day, such as 02:00 to 05:00. One that ends before it starts ends on the
// next day. TimeZone is a name such as Europe/Berlin; nil: UTC.
type PrepullWindowInput struct {
	Start    string
	End      string
	TimeZone *string
}

// window is a range of times of the day, in minutes after midnight.
type window struct {
	Start, End int
	Zone       string
}

const timeOfDay = "15:04"

func (in *PrepullWindowInput) parse() (*window, error) {
	w := &window{Zone: "UTC"}
	for _, one := range []struct {
		field, text string
		to          *int
	}{{"window.start", in.Start, &w.Start}, {"window.end", in.End, &w.End}} {
		at, err := time.Parse(timeOfDay, one.text)
		if err != nil {
			return nil, problem.Invalid(one.field, "%.40q is not a time of the day such as 02:00", one.text)
		}
		*one.to = at.Hour()*60 + at.Minute()
	}
	if w.Start == w.End {
		return nil, problem.Invalid("window.end", "%s is also the start of the window", in.End)
	}
	if in.TimeZone != nil && *in.TimeZone != "" {
		w.Zone = *in.TimeZone
	}
	if _, err := w.location(); err != nil {
		return nil, problem.Invalid("window.timeZone", "%.80q is not a time zone such as Europe/Berlin", w.Zone)
	}
	return w, nil
}

// location returns the time zone. Local would depend on the manager.
func (w *window) location() (*time.Location, error) {
	if w.Zone == "Local" {
		return nil, fmt.Errorf("time zone %q depends on the machine", w.Zone)
	}
	return time.LoadLocation(w.Zone)
}

// at reports whether a time is in the window, and returns the end of the window then, or its next start.
func (w *window) at(now time.Time) (open bool, change time.Time, err error) {
	zone, err := w.location()
	if err != nil {
		return false, change, fmt.Errorf("window: %w", err)
	}
	now = now.In(zone)
	for day := -1; ; day++ {
		begins := w.on(now, day, w.Start)
		ends := w.on(now, day, w.End)
		if w.End < w.Start {
			ends = w.on(now, day+1, w.End)
		}
		switch {
		case now.Before(begins):
			return false, begins, nil
		case now.Before(ends):
			return true, ends, nil
		}
	}
}

// on returns a time of the day, a number of days after another time.
func (w *window) on(now time.Time, days, minutes int) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, minutes/60, minutes%60, 0, 0, now.Location())
}

// show formats a time for people, in the time zone of the window; nil: UTC.
func (w *window) show(at time.Time) string {
	name := "UTC"
	at = at.UTC()
	if w != nil {
		if zone, err := w.location(); err == nil {
			name, at = w.Zone, at.In(zone)
		}
	}
	return at.Format("2006-01-02 15:04 ") + name
}
