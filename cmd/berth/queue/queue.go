// Package queue has the command that lists waiting sessions.
package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth queue".
func Command(a *cli.App) *cobra.Command {
	limit := 50
	cmd := a.Verb("queue [GROUP]", "Show the pending sessions of a resource group, or of all, in scheduling order", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			ids, err := queuesOf(ctx, c, args)
			if err != nil {
				return err
			}
			queues := []*client.Queue{}
			for _, id := range ids {
				q, err := c.Queue(ctx, id, limit)
				if err != nil {
					return err
				}
				if len(args) > 0 || q.TotalCount > 0 {
					queues = append(queues, q)
				}
			}
			p := a.Printer()
			return p.Print(queues, func() error { return p.Write(queueTable(a, queues)) })
		})
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "most sessions of a group; 0 for all")
	return cmd
}

// queuesOf returns the queue of the named group, or all queues.
func queuesOf(ctx context.Context, c *client.Client, args []string) ([]string, error) {
	if len(args) > 0 {
		id, err := cli.FindGroupID(ctx, c, args[0])
		return []string{id}, err
	}
	all, err := c.Groups(ctx, "")
	var ids []string
	for _, g := range all {
		ids = append(ids, g.ID)
	}
	return ids, err
}

func queueTable(a *cli.App, queues []*client.Queue) *output.Table {
	t := output.NewTable("GROUP", "NO", "SESSION", "OWNER", "PRIORITY", "WAITS", "STARTS BY", "STANDING", "WHY").Spare("STANDING")
	for _, q := range queues {
		for _, e := range q.Entries {
			name, owner := "", ""
			if e.Session != nil {
				name, owner = e.Session.Name, e.Session.Owner.Title()
			}
			starts := ""
			if e.EstimatedStart != nil {
				starts = cli.Clock(*e.EstimatedStart)
			}
			t.Row(q.Group, strconv.Itoa(e.Position), name, owner, strconv.Itoa(e.Priority), output.Age(a.Now(), e.WaitingSince), starts, standingText(e.Order), e.Why)
		}
		if more := q.TotalCount - len(q.Entries); more > 0 {
			t.Row(q.Group, "", fmt.Sprintf("and %d more", more))
		}
	}
	return t
}

// standingText lists the factors that decide the position of a session.
func standingText(o *client.QueueOrder) (text string) {
	if o == nil {
		return ""
	}
	for i, l := range o.Levels {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %.3g", l.Scope, l.Factor)
	}
	return text
}
