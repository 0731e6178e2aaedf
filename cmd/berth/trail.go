package main

import (
	"context"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

// periodFlags say from when until when.
type periodFlags struct{ since, until string }

func (f *periodFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "from when: a date, an RFC 3339 time, or an age such as 12h or 7d")
	cmd.Flags().StringVar(&f.until, "until", "", "until when, likewise")
}

func (f *periodFlags) read(a *app) (from, to time.Time, err error) {
	if from, err = a.when("--since", f.since); err != nil {
		return from, to, err
	}
	to, err = a.when("--until", f.until)
	return from, to, err
}

func (a *app) activityCommand() *cobra.Command {
	var f client.AuditFilter
	var period periodFlags
	cmd := a.verb("activity", "List your actions, and those on your behalf or on your account, newest first", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) (err error) {
			if f.From, f.To, err = period.read(a); err != nil {
				return err
			}
			list, err := c.Activity(ctx, f)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return auditTable(list) })
		})
	period.register(cmd)
	cmd.Flags().StringVar(&f.Action, "action", "", "only this mutation, for example createSession")
	cmd.Flags().BoolVar(&f.Refused, "refused", false, "only entries that were refused or failed")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}

func auditTable(list []client.AuditEntry) *output.Table {
	t := output.NewTable("TIME", "WHO", "ACTION", "ON", "RESULT", "FROM", "MESSAGE").Spare("FROM", "ON")
	for _, e := range list {
		result := output.Cell{Text: sentence(strings.ToLower(e.Result)), Color: output.Green}
		if e.Result != "OK" {
			result.Color = output.Yellow
		}
		t.Row(clock(e.At), actorText(e), e.Action, objectText(e), result, e.ClientAddress, e.Message)
	}
	return t
}

func actorText(e client.AuditEntry) string {
	text := e.ActorEmail
	if text == "" {
		text = "(no one)"
		if e.ActorID == nil && e.RequestID == "" {
			text = "(the platform)"
		}
	}
	switch {
	case e.ActedAs != nil:
		text += " as " + e.ActedAs.Email
	case e.ActedAsID != nil:
		text += " as " + *e.ActedAsID
	}
	return text
}

func objectText(e client.AuditEntry) string {
	text := sentence(e.Entity)
	if e.EntityID != nil {
		text += " " + *e.EntityID
	}
	return text
}
