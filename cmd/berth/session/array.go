package session

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func arrayCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("array", "Manage arrays of sessions, which berth run --array creates",
		listArrays(a), showArray(a), cancelArray(a), retryArray(a)), "arrays")
}

// createArray creates an array and prints its name.
func createArray(ctx context.Context, a *cli.App, c *client.Client, in client.CreateSessionInput, indexes string) error {
	x, err := c.CreateSessionArray(ctx, client.CreateSessionArrayInput{Session: in, Indexes: indexes})
	if err != nil {
		return err
	}
	return a.Printer().Print(x, func() error {
		_, err := fmt.Fprintln(a.Out, x.Name)
		a.Note("%d sessions created; see: berth session array show %s", x.Size, x.Name)
		return err
	})
}

func listArrays(a *cli.App) *cobra.Command {
	var f client.SessionArrayFilter
	var all bool
	cmd := a.List("List arrays of sessions: those with members that live, or all", func(ctx context.Context, c *client.Client, _ []string) error {
		f.Live = !all
		list, err := c.SessionArrays(ctx, f)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("NAME", "INDEXES", "MEMBERS", "AT ONCE", "STATUS", "AGE", "OWNER").Spare("OWNER")
			for _, x := range list {
				t.Row(x.Name, x.Indexes, strconv.Itoa(x.Size), atOnce(x), countsText(x.Counts), output.Age(a.Now(), x.CreatedAt), x.Owner.Title())
			}
			return t
		})
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also arrays whose members have all ended")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many, newest first; 0 = all")
	return cmd
}

func atOnce(x client.SessionArray) string {
	if x.MaxRunning == nil {
		return "-"
	}
	return strconv.Itoa(*x.MaxRunning)
}

// countsText lists the states that some members are in.
func countsText(c client.SessionArrayCounts) string {
	var parts []string
	for _, one := range []struct {
		n    int
		what string
	}{
		{c.Running, "running"}, {c.Starting, "starting"}, {c.Pending, "pending"}, {c.Ending, "ending"},
		{c.Succeeded, "succeeded"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"},
	} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return strings.Join(parts, ", ")
}

func showArray(a *cli.App) *cobra.Command {
	var limit int
	cmd := a.Verb("show ARRAY", "Show an array and its members", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		x, err := cli.FindArray(ctx, c, args[0])
		if err != nil {
			return err
		}
		members, err := c.Sessions(ctx, client.SessionFilter{Array: x.ID, Limit: limit})
		if err != nil {
			return err
		}
		return a.Printer().Print(struct {
			*client.SessionArray
			Sessions []client.Session `json:"sessions"`
		}{x, members}, func() error {
			s := a.Sheet()
			s.Fact("Name", x.Name)
			s.Fact("ID", x.ID)
			s.Fact("Indexes", fmt.Sprintf("%s (%d)", x.Indexes, x.Size))
			s.Fact("At once", atOnce(*x))
			s.Fact("Members", countsText(x.Counts))
			s.Fact("Owner", x.Owner.Title())
			s.Fact("Project", x.Project.Title())
			s.Fact("Created", a.Moment(&x.CreatedAt))
			s.Gap()
			return a.Printer().Write(Table(a, members))
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many members, newest first; 0 = all")
	return cmd
}

func cancelArray(a *cli.App) *cobra.Command {
	var force bool
	cmd := a.Verb("cancel ARRAY", "End all members of an array that have not ended", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		x, err := cli.FindArray(ctx, c, args[0])
		if err != nil {
			return err
		}
		n, err := c.CancelSessionArray(ctx, x.ID, force)
		if err != nil {
			return err
		}
		return printCount(a, x, n, "ended")
	})
	cmd.Flags().BoolVarP(&force, "force", "f", false, "skip the grace period")
	return cmd
}

func retryArray(a *cli.App) *cobra.Command {
	return a.Verb("retry ARRAY", "Start the members of an array again that ended without success", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		x, err := cli.FindArray(ctx, c, args[0])
		if err != nil {
			return err
		}
		n, err := c.RetrySessionArray(ctx, x.ID)
		if err != nil {
			return err
		}
		return printCount(a, x, n, "started again")
	})
}

func printCount(a *cli.App, x *client.SessionArray, n int, what string) error {
	return a.Printer().Print(struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Sessions int    `json:"sessions"`
	}{x.ID, x.Name, n}, func() error {
		_, err := fmt.Fprintf(a.Out, "%s: %d sessions %s\n", output.Clean(x.Name), n, what)
		return err
	})
}
