package policy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func idleDryRun(a *cli.App) *cobra.Command {
	var terms client.UpdateIdleCheckerInput
	var kind client.Enum
	var f idlePlaceFlags
	cmd := a.Verb("dry-run [CHECKER]", "Show what an idle checker, existing or new, would end now", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			at, err := f.place(ctx, c)
			if err != nil {
				return err
			}
			id, made := "", (*client.CreateIdleCheckerInput)(nil)
			if len(args) > 0 {
				if cli.RequireChanges(terms) == nil || kind != "" {
					return cli.Usagef("name a checker, or describe a new one with flags")
				}
				id, err = findIdleCheckerID(ctx, c, args[0])
			} else {
				made = new(client.CreateIdleCheckerInput)
				*made, err = wholeChecker(terms, kind)
			}
			if err != nil {
				return err
			}
			run, err := c.IdleDryRun(ctx, id, made, at)
			if err != nil {
				return err
			}
			return printIdleDryRun(a, run)
		})
	cmd.Example = `  berth admin idle dry-run lazy
  berth admin idle dry-run --kind network --timeout 1h --group gpu`
	cli.ParsedFlag(cmd, &kind, "kind", "`kind` of checker: "+idleKinds, cli.Choice("lifetime", "network", "utilization", "memory"))
	idleFlags(cmd, &terms)
	f.add(cmd)
	return cmd
}

func printIdleDryRun(a *cli.App, run *client.IdleDryRun) error {
	p := a.Printer()
	return p.Print(run, func() error {
		fmt.Fprintf(a.Out, "Would end %d of %d sessions now.", run.Ending, run.Examined)
		if run.Unknown > 0 {
			fmt.Fprintf(a.Out, " %d were not measured for long enough.", run.Unknown)
		}
		if run.Exempt > 0 {
			fmt.Fprintf(a.Out, " %d are exempt.", run.Exempt)
		}
		fmt.Fprintln(a.Out)
		if len(run.Sessions) == 0 {
			return nil
		}
		fmt.Fprintln(a.Out)
		t := output.NewTable("SESSION", "OWNER", "ENDS", "WHY").Spare("OWNER")
		for _, one := range run.Sessions {
			ends := output.Cell{Text: cli.Clock(one.EndsAt)}
			if one.Now {
				ends = output.Cell{Text: "now", Color: output.Red}
			}
			t.Row(one.Session.Name, one.Session.Owner.Title(), ends, one.Reason)
		}
		return p.Write(t)
	})
}
