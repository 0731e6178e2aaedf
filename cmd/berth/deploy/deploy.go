// Package deploy has the commands about deployments, which serve models behind one address.
package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth deploy".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("deploy", "Serve models: replicas of an engine behind one address",
		createCommand(a), listCommand(a), showCommand(a), updateCommand(a), scaleCommand(a), rollbackCommand(a), promoteCommand(a),
		waitCommand(a), eventsCommand(a), recordsCommand(a), statsCommand(a), logsCommand(a), removeCommand(a), keyCommand(a), variantsCommand(a))
	return cli.Alias(cmd, "deployment", "deployments")
}

// onDeployment makes a command act on the deployment that its first argument names.
func onDeployment(a *cli.App, cmd *cobra.Command, do func(cmd *cobra.Command, c *client.Client, d *client.Deployment, args []string) error) *cobra.Command {
	cmd.ValidArgsFunction = a.CompleteDeployment
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usagef("usage: %s", cmd.UseLine())
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		d, err := cli.FindDeployment(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return do(cmd, c, d, args[1:])
	}
	return cmd
}

func findID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return cli.IDOr(ref, func() (*client.Deployment, error) { return cli.FindDeployment(ctx, c, ref) }, func(d *client.Deployment) string { return d.ID })
}

func listCommand(a *cli.App) *cobra.Command {
	var all, mine bool
	cmd := a.List("List deployments", func(ctx context.Context, c *client.Client, _ []string) error {
		f := client.DeploymentFilter{Live: !all}
		if mine {
			who, err := c.Viewer(ctx)
			if err != nil {
				return err
			}
			f.Owner = who.User.ID
		}
		list, err := c.Deployments(ctx, f)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return table(a, list...) })
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also deployments that have ended")
	cmd.Flags().BoolVar(&mine, "mine", false, "only your own")
	return cmd
}

func table(a *cli.App, list ...client.Deployment) *output.Table {
	t := output.NewTable("NAME", "STATUS", "READY", "REQUESTS/S", "FIRST BYTE P95", "PROJECT", "OWNER", "AGE", "MESSAGE").Spare("AGE", "OWNER", "PROJECT")
	for _, d := range list {
		rate, first := "-", "-"
		if d.Load != nil {
			rate, first = fmt.Sprintf("%.1f", d.Load.RequestsPerSecond), milliseconds(d.Load.FirstByteP95)
		}
		t.Row(d.Name, status(d.Status), fmt.Sprintf("%d/%d", d.Ready.TotalCount, d.Wanted), rate, first, d.Project.Name, d.Owner.Email, output.Age(a.Now(), d.CreatedAt), d.Message)
	}
	return t
}

func status(s client.Enum) output.Cell {
	c := output.Cell{Text: s.String()}
	switch s {
	case "SERVING":
		c.Color = output.Green
	case "DEGRADED":
		c.Color = output.Red
	case "STARTING", "UPDATING", "ENDING":
		c.Color = output.Yellow
	case "ASLEEP", "ENDED":
		c.Color = output.Dim
	}
	return c
}

// milliseconds formats a number of milliseconds that may be unknown.
func milliseconds(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms >= 1000:
		return fmt.Sprintf("%.1f s", *ms/1000)
	case *ms >= 10:
		return fmt.Sprintf("%.0f ms", *ms)
	}
	return fmt.Sprintf("%.1f ms", *ms)
}

// changed prints a deployment after a change: its name for people, all of it for programs.
func changed(a *cli.App, d *client.DeploymentDetail) error {
	return a.Printer().Print(d, func() error {
		text := d.Name + ": " + d.Status.String()
		if d.Message != "" {
			text += ", " + d.Message
		}
		_, err := fmt.Fprintln(a.Out, output.Clean(text))
		return err
	})
}

func variantsCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("variants [NAME]", "List the engines that serve models, or the options of one", cli.Args(0, 1), func(ctx context.Context, c *client.Client, args []string) error {
		list, err := c.ModelVariants(ctx)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return a.Table(list, func() *output.Table {
				t := output.NewTable("NAME", "TITLE", "PORT", "HEALTH", "COMMAND")
				for _, v := range list {
					t.Row(v.Name, v.Title, fmt.Sprint(v.Port), v.Health, strings.Join(v.Command, " "))
				}
				return t
			})
		}
		v, err := cli.Pick(ctx, c, "variant", args[0], list, nil, func(v client.ModelVariant) (id, name string) { return v.Name, v.Name })
		if err != nil {
			return err
		}
		return a.Table(v, func() *output.Table {
			t := output.NewTable("OPTION", "TYPE", "VALUES", "HELP")
			for _, o := range v.Options {
				t.Row(o.Name, o.Type.String(), values(o), o.Help)
			}
			return t
		})
	})
	return cmd
}

// values describes what an option of an engine can be.
func values(o client.ModelVariantOption) string {
	switch {
	case len(o.Choices) > 0:
		return strings.Join(o.Choices, ", ")
	case o.Type == "SWITCH":
		return "true, false"
	case o.Minimum != nil && o.Maximum != nil && *o.Maximum > *o.Minimum:
		return fmt.Sprintf("%.12g to %.12g", *o.Minimum, *o.Maximum)
	}
	return ""
}
