package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// DoctorCommand returns the command "berth admin doctor".
func DoctorCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := a.Verb("doctor", "Look for faults of the cluster, and say what follows and what to do; exits with 1 if there is one", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			d, err := c.Diagnosis(ctx)
			if err != nil {
				return err
			}
			if err := a.Printer().Print(d, func() error { return describe(a, d, all) }); err != nil {
				return err
			}
			for _, f := range d.Findings {
				if f.Severity == "FAULT" {
					return fmt.Errorf("the cluster has a fault")
				}
			}
			return nil
		})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also print the checks that found no fault")
	return cmd
}

var colors = map[client.Enum]output.Color{"FAULT": output.Red, "WARNING": output.Yellow, "NOTICE": output.Dim, "FINE": output.Green}

// describe prints the findings, the worst first.
func describe(a *cli.App, d *client.Diagnosis, all bool) error {
	fine := 0
	t := output.NewTable("RESULT", "CHECK", "WHAT", "SO", "DO")
	for _, f := range d.Findings {
		if f.Severity == "FINE" {
			if fine++; !all {
				continue
			}
		}
		t.Row(output.Cell{Text: cli.Sentence(f.Severity.String()), Color: colors[f.Severity]}, cli.Sentence(f.Check.String()), f.Text, f.Consequence, f.Fix)
	}
	if fine < len(d.Findings) || all {
		if err := a.Printer().Write(t); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.Out, "%d of %d results have no fault\n", fine, len(d.Findings))
	return err
}
