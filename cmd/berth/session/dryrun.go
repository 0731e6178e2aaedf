package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// try prints the result of a dry run. It returns an error if the session could never start.
func try(ctx context.Context, a *cli.App, c *client.Client, in client.CreateSessionInput) error {
	d, err := c.DryRun(ctx, in)
	if err != nil {
		return err
	}
	p := a.Printer()
	err = p.Print(d, func() error {
		verdict(a, d)
		return nil
	})
	if err == nil && (d.Verdict == "REFUSED" || d.Verdict == "NEVER") {
		err = cli.StatusError(cli.ExitInvalid)
	}
	return err
}

func verdict(a *cli.App, d *client.DryRun) {
	s := a.Sheet()
	switch d.Verdict {
	case "NOW":
		var names []string
		for _, agent := range d.Agents {
			names = append(names, agent.Name)
		}
		text := "It would start at once in the resource group " + d.ResourceGroup.Title()
		if len(names) > 0 {
			text += ", on " + strings.Join(names, ", ")
		}
		fmt.Fprintln(a.Out, output.Clean(text+"."))
	case "WAITS":
		fmt.Fprintln(a.Out, "It would wait.")
		head(s, d.Pending, d.ResourceGroup.Title())
		findings(s, &d.Pending.PendingReport)
		suggestions(s, d.Pending.Suggestions, func(client.Suggestion) string { return "" })
	case "NEVER":
		fmt.Fprintln(a.Out, "No machine could ever run it:")
	default:
		fmt.Fprintln(a.Out, "It would be refused:")
	}
	for _, r := range d.Refusals {
		text := r.Message
		if r.Field != "" {
			text = r.Field + ": " + text
		}
		fmt.Fprintln(a.Out, "  "+output.Clean(text))
	}
}
