package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/output"
)

// Seconds shows a number of seconds as a duration.
func Seconds(n int) string { return output.Duration(time.Duration(n) * time.Second) }

// Moment formats a time, with the elapsed time since.
func (a *App) Moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), output.Age(a.Now(), *t))
}

// Clock formats a time with seconds.
func Clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05") }

// Ago formats the elapsed time since at; nil is never.
func (a *App) Ago(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return output.Age(a.Now(), *at) + " ago"
}

// PeriodFlags are the flags for the start and the end of a period.
type PeriodFlags struct{ since, until string }

// Register adds the flags to a command.
func (f *PeriodFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "from when: a date, an RFC 3339 time, or an age such as 12h or 7d")
	cmd.Flags().StringVar(&f.until, "until", "", "until when, likewise")
}

// Read returns the period that the flags name.
func (f *PeriodFlags) Read(a *App) (from, to time.Time, err error) {
	if from, err = a.ParseTime("--since", f.since); err != nil {
		return from, to, err
	}
	to, err = a.ParseTime("--until", f.until)
	return from, to, err
}

// ParseTime reads a point in time; "" is the zero time.
func (a *App) ParseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation("2006-01-02", text, time.Local); err == nil {
		return t, nil
	}
	d, err := ParseSpan(text)
	if err != nil {
		return time.Time{}, Usagef("%s %s: not a date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z or an age such as 7d", flag, text)
	}
	return a.Now().Add(-d), nil
}

// ParseEnd reads a future end: a date, a time or a duration; nil for never.
func (a *App) ParseEnd(flag, text string) (*time.Time, error) {
	if text == "never" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02", text, time.Local)
	}
	if err != nil {
		var d time.Duration
		d, err = ParseSpan(text)
		at = a.Now().Add(d)
	}
	if err != nil {
		return nil, Usagef("%s %s: not a date such as 2026-12-31, a time such as 2026-12-31T12:00:00Z, a span such as 30d, or never", flag, text)
	}
	if !at.After(a.Now()) {
		return nil, Usagef("%s %s: is past already", flag, text)
	}
	return &at, nil
}
