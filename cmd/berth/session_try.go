package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// try prints what would happen to a session. It fails if the session could never start.
func (a *app) try(ctx context.Context, c *client.Client, in client.CreateSessionInput) error {
	d, err := c.DryRun(ctx, in)
	if err != nil {
		return err
	}
	p := a.print()
	err = p.Print(d, func() error {
		a.verdict(d)
		return nil
	})
	if err == nil && (d.Verdict == "refused" || d.Verdict == "never") {
		err = statusError(exitInvalid)
	}
	return err
}

func (a *app) verdict(d *client.DryRun) {
	s := a.sheet()
	switch d.Verdict {
	case "now":
		var names []string
		for _, agent := range d.Agents {
			names = append(names, agent.Name)
		}
		text := "It would start at once in the resource group " + d.ResourceGroup.Title()
		if len(names) > 0 {
			text += ", on " + strings.Join(names, ", ")
		}
		fmt.Fprintln(a.out, output.Clean(text+"."))
	case "waits":
		fmt.Fprintln(a.out, "It would wait.")
		s.head(d.Pending, d.ResourceGroup.Title())
		s.findings(&d.Pending.PendingReport)
		s.suggestions(d.Pending.Suggestions, func(client.Suggestion) string { return "" })
	case "never":
		fmt.Fprintln(a.out, "No machine could ever run it:")
	default:
		fmt.Fprintln(a.out, "It would be refused:")
	}
	for _, r := range d.Refusals {
		text := r.Message
		if r.Field != "" {
			text = r.Field + ": " + text
		}
		fmt.Fprintln(a.out, "  "+output.Clean(text))
	}
}
