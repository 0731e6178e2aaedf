package audit

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ActivityCommand returns the command "berth activity".
func ActivityCommand(a *cli.App) *cobra.Command {
	var f client.AuditFilter
	var period cli.PeriodFlags
	cmd := a.Verb("activity", "List your actions, and those on your behalf or on your account, newest first", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) (err error) {
			if f.From, f.To, err = period.Read(a); err != nil {
				return err
			}
			list, err := c.Activity(ctx, f)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return auditTable(list) })
		})
	period.Register(cmd)
	cmd.Flags().StringVar(&f.Action, "action", "", "only this mutation, for example createSession")
	cmd.Flags().BoolVar(&f.Refused, "refused", false, "only entries that were refused or failed")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}

func auditTable(list []client.AuditEntry) *output.Table {
	t := output.NewTable("TIME", "WHO", "ACTION", "ON", "RESULT", "FROM", "MESSAGE").Spare("FROM", "ON")
	for _, e := range list {
		result := output.Cell{Text: cli.Sentence(strings.ToLower(e.Result)), Color: output.Green}
		if e.Result != "OK" {
			result.Color = output.Yellow
		}
		t.Row(cli.Clock(e.At), actorText(e), e.Action, objectText(e), result, e.ClientAddress, e.Message)
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
	text := cli.Sentence(e.Entity)
	if e.EntityID != nil {
		text += " " + *e.EntityID
	}
	return text
}
