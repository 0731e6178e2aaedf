package volume

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/access"
)

// Command returns the command "berth admin volume".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("volume", "List volumes, and manage who may use their folders",
		listCommand(a), showCommand(a), orphansCommand(a), grantsCommand(a), grantCommand(a), revokeCommand(a)), "volumes")
}

func grantsCommand(a *cli.App) *cobra.Command {
	return a.Verb("grants VOLUME", "List the grants of a volume", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := cli.FindVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.VolumeGrants(ctx, v.ID)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return volumeGrantTable(list...) })
		})
}

func volumeGrantTable(list ...client.VolumeGrant) *output.Table {
	t := output.NewTable("WHO", "MAY", "ID").Spare("ID")
	for _, g := range list {
		may := strings.ReplaceAll(strings.Join(cli.EnumTexts(g.Permissions), ", "), "_", "-")
		if len(g.Permissions) == len(access.VolumePermissions()) {
			may = "all"
		}
		t.Row(grantedTo(g), may, g.ID)
	}
	return t
}

func grantedTo(g client.VolumeGrant) string {
	if g.Everybody {
		return "everybody"
	}
	return cli.HolderText(g.Domain, g.Project, g.User, "a holder that you cannot see")
}

// volumeHolder has the flags that name the holder of a grant.
type volumeHolder struct {
	cli.HolderFlags
	everybody bool
}

func (f *volumeHolder) register(cmd *cobra.Command) {
	f.Add(cmd, false)
	cmd.Flags().BoolVar(&f.everybody, "everybody", false, "everybody")
}

func (f *volumeHolder) find(ctx context.Context, c *client.Client) (h cli.Holder, err error) {
	switch {
	case f.everybody && f.Given() == 0:
		return h, nil
	case f.everybody || f.Given() != 1:
		return h, cli.Usagef("set one of --everybody, --domain, --project and --user")
	}
	return f.Holder(ctx, c)
}

func grantCommand(a *cli.App) *cobra.Command {
	var f volumeHolder
	var may []client.Enum
	var all []string
	for _, p := range access.VolumePermissions() {
		all = append(all, string(p))
	}
	cmd := a.Verb("grant VOLUME", "Grant permissions on a volume's folders, replacing those of the same holder", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if may == nil {
				return cli.Usagef("set --allow to the permissions, or to all")
			}
			h, err := f.find(ctx, c)
			if err != nil {
				return err
			}
			v, err := cli.FindVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			g, err := c.GrantVolume(ctx, client.GrantVolumeInput{
				Volume: v.ID, Domain: h.Domain, Project: h.Project, User: h.User, Permissions: may,
			})
			if err != nil {
				return err
			}
			return a.Table(g, func() *output.Table { return volumeGrantTable(*g) })
		})
	cmd.Long = `Grant permissions on a volume's folders to a domain, a project, a user or all
users. This replaces the grant of the same holder. Permissions of several grants
add up, and every role needs them.`
	cmd.Example = "  berth admin volume grant fast --project thesis --allow create-folder,mount,upload,download"
	f.register(cmd)
	one := cli.Choices(all...)
	cli.ListFlag(cmd, &may, "allow", "`permissions`, separated by commas: "+strings.ReplaceAll(strings.Join(all, ", "), "_", "-")+"; or all", func(text string) ([]client.Enum, error) {
		if text == "all" {
			return client.Enums(all), nil
		}
		return one(text)
	})
	cli.SetsField(cmd, "allow", "permissions")
	return cmd
}

func revokeCommand(a *cli.App) *cobra.Command {
	var f volumeHolder
	cmd := a.Verb("revoke VOLUME", "Revoke a grant on a volume", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			h, err := f.find(ctx, c)
			if err != nil {
				return err
			}
			v, err := cli.FindVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.VolumeGrants(ctx, v.ID)
			if err != nil {
				return err
			}
			for _, g := range list {
				if holds(g, h) {
					return a.Removed(v.Name, c.RevokeVolume(ctx, g.ID))
				}
			}
			return fmt.Errorf("nothing was granted there on %s: %w", v.Name, errdefs.ErrNotFound)
		})
	f.register(cmd)
	return cmd
}

// holds reports whether a grant belongs to exactly this holder. An empty holder means everyone.
func holds(g client.VolumeGrant, h cli.Holder) bool {
	var is cli.Holder
	if g.Domain != nil {
		is.Domain = g.Domain.ID
	}
	if g.Project != nil {
		is.Project = g.Project.ID
	}
	if g.User != nil {
		is.User = g.User.ID
	}
	return is == h && g.Everybody == (h == cli.Holder{})
}
