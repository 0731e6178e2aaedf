package policy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ShareCommand returns the command "berth admin share".
func ShareCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("share", "Manage fair-share weights of domains, projects and users",
		shareList(a), shareSet(a), shareUnset(a)), "shares")
}

func shareList(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("ls GROUP", "Show the usage, fair share and weight of the domains, projects and users of a group", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := cli.FindGroupID(ctx, c, args[0])
			if err != nil {
				return err
			}
			shares, err := c.GroupShares(ctx, id)
			if err != nil {
				return err
			}
			p := a.Printer()
			return p.Print(shares, func() error {
				if err := p.Write(holdersTable(shares.ShareHolders)); err != nil || len(shares.ShareWeights) == 0 {
					return err
				}
				fmt.Fprintln(a.Out)
				return p.Write(weightsTable(shares.ShareWeights))
			})
		}), "list")
}

func holdersTable(list []client.ShareHolder) *output.Table {
	t := output.NewTable("HOLDER", "WEIGHT", "DUE", "USED", "FACTOR", "HAS NOW", "WAIT").Spare("HAS NOW")
	within := ""
	for _, h := range list {
		name := cli.HolderText(h.Domain, nil, nil, "a domain")
		switch h.Scope {
		case "PROJECT":
			name, within = "  "+cli.HolderText(nil, h.Project, nil, "a project"), "    "
		case "USER":
			name = within + cli.HolderText(nil, nil, h.User, "a user")
		}
		t.Row(name, number(h.Weight), percent(h.Due), percent(h.Used), fmt.Sprintf("%.3f", h.Factor), output.Slots(h.Held), strconv.Itoa(h.Waiting))
	}
	return t
}

func weightsTable(list []client.ShareWeight) *output.Table {
	t := output.NewTable("WEIGHT", "OF", "IN")
	for _, w := range list {
		of, in := cli.HolderText(w.Domain, w.Project, w.User, "somebody"), "all groups"
		if w.WithinProject != nil {
			of += " within project " + w.WithinProject.Name
		}
		if w.ResourceGroup != nil {
			in = w.ResourceGroup.Name
		}
		t.Row(number(w.Weight), of, in)
	}
	return t
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// shareFlags name the holder of a weight and the resource group.
type shareFlags struct {
	cli.HolderFlags
	group, within string
}

func (f *shareFlags) register(cmd *cobra.Command) {
	f.Add(cmd, false)
	cmd.Flags().StringVar(&f.group, "group", "", "only in this resource group; without it in all")
	cmd.Flags().StringVar(&f.within, "within-project", "", "with --user: only in this project")
}

func (f *shareFlags) input(ctx context.Context, c *client.Client) (in client.SetShareWeightInput, err error) {
	if f.Given() != 1 {
		return in, cli.Usagef("name one of --domain, --project and --user")
	}
	h, err := f.Holder(ctx, c)
	if err != nil {
		return in, err
	}
	in.Domain, in.Project, in.User = h.Domain, h.Project, h.User
	if in.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group); err != nil {
		return in, err
	}
	in.WithinProject, err = cli.FindProjectID(ctx, c, f.within)
	return in, err
}

func shareSet(a *cli.App) *cobra.Command {
	var f shareFlags
	cmd := a.Verb("set WEIGHT", "Set the weight of a domain, project or user; the default is 1", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			if in.Weight, err = strconv.ParseFloat(args[0], 64); err != nil {
				return cli.Usagef("%q is not a number", args[0])
			}
			w, err := c.SetShareWeight(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(w, func() *output.Table { return weightsTable([]client.ShareWeight{*w}) })
		})
	cmd.Example = `  berth admin share set 2 --project thesis --group lab
  berth admin share set 0.5 --user kim@example.org --within-project thesis`
	f.register(cmd)
	return cmd
}

func shareUnset(a *cli.App) *cobra.Command {
	var f shareFlags
	cmd := a.Verb("unset", "Remove the weight with the same --group and --within-project", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			list, err := weightsFor(ctx, c, in.ResourceGroup)
			if err != nil {
				return err
			}
			for _, w := range list {
				if sameHolder(w, in) {
					return a.Removed(strings.TrimSpace(f.Domain+f.Project+f.User), c.DeleteShareWeight(ctx, w.ID))
				}
			}
			return fmt.Errorf("no such weight is set: %w", errdefs.ErrNotFound)
		})
	f.register(cmd)
	return cmd
}

// weightsFor lists the weights that apply in a group, or in all groups for "".
func weightsFor(ctx context.Context, c *client.Client, group string) ([]client.ShareWeight, error) {
	if group == "" { // weights for all groups are in every group
		all, err := c.Groups(ctx, "")
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, errors.New("you can see no resource group")
		}
		group = all[0].ID
	}
	shares, err := c.GroupShares(ctx, group)
	if err != nil {
		return nil, err
	}
	return shares.ShareWeights, nil
}

func sameHolder(w client.ShareWeight, in client.SetShareWeightInput) bool {
	id := func(r *client.Ref) string {
		if r == nil {
			return ""
		}
		return r.ID
	}
	user := ""
	if w.User != nil {
		user = w.User.ID
	}
	return id(w.Domain) == in.Domain && id(w.Project) == in.Project && user == in.User &&
		id(w.ResourceGroup) == in.ResourceGroup && id(w.WithinProject) == in.WithinProject
}
