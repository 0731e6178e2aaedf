package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/access"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) volumeCommand() *cobra.Command {
	return alias(group("volume", "List volumes, and manage who may use their folders",
		a.volumeList(), a.volumeShow(), a.volumeOrphans(), a.volumeGrants(), a.volumeGrant(), a.volumeRevoke()), "volumes")
}

func (a *app) volumeGrants() *cobra.Command {
	return a.verb("grants VOLUME", "List the grants of a volume", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := findVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.VolumeGrants(ctx, v.ID)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return volumeGrantTable(list...) })
		})
}

func volumeGrantTable(list ...client.VolumeGrant) *output.Table {
	t := output.NewTable("WHO", "MAY", "ID").Spare("ID")
	for _, g := range list {
		may := strings.ReplaceAll(strings.Join(g.Permissions, ", "), "_", "-")
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
	return holderText(g.Domain, g.Project, g.User, "somebody out of sight")
}

// volumeHolder are the flags that name whom a grant is for.
type volumeHolder struct {
	holderFlags
	everybody bool
}

func (f *volumeHolder) register(cmd *cobra.Command) {
	f.add(cmd, false)
	cmd.Flags().BoolVar(&f.everybody, "everybody", false, "everybody")
}

func (f *volumeHolder) find(ctx context.Context, c *client.Client) (h holder, err error) {
	switch {
	case f.everybody && f.given() == 0:
		return h, nil
	case f.everybody || f.given() != 1:
		return h, usagef("set one of --everybody, --domain, --project and --user")
	}
	return f.holder(ctx, c)
}

func (a *app) volumeGrant() *cobra.Command {
	var f volumeHolder
	var may []string
	var all []string
	for _, p := range access.VolumePermissions() {
		all = append(all, string(p))
	}
	cmd := a.verb("grant VOLUME", "Grant permissions on a volume's folders, replacing those of the same holder", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if may == nil {
				return usagef("set --allow to the permissions, or to all")
			}
			h, err := f.find(ctx, c)
			if err != nil {
				return err
			}
			v, err := findVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			g, err := c.SetVolumeGrant(ctx, client.SetVolumeGrantInput{
				Volume: v.ID, Domain: h.domain, Project: h.project, User: h.user, Permissions: may,
			})
			if err != nil {
				return err
			}
			return a.table(g, func() *output.Table { return volumeGrantTable(*g) })
		})
	cmd.Long = `Grant permissions on a volume's folders to a domain, a project, a user or all
users. This replaces the grant of the same holder. Permissions of several grants
add up, and every role needs them.`
	cmd.Example = "  berth admin volume grant fast --project thesis --allow create-folder,mount,upload,download"
	f.register(cmd)
	one := choices(all...)
	givenList(cmd, &may, "allow", "`permissions`, separated by commas: "+strings.ReplaceAll(strings.Join(all, ", "), "_", "-")+"; or all", func(text string) ([]string, error) {
		if text == "all" {
			return all, nil
		}
		return one(text)
	})
	sets(cmd, "allow", "permissions")
	return cmd
}

func (a *app) volumeRevoke() *cobra.Command {
	var f volumeHolder
	cmd := a.verb("revoke VOLUME", "Revoke a grant on a volume", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			h, err := f.find(ctx, c)
			if err != nil {
				return err
			}
			v, err := findVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.VolumeGrants(ctx, v.ID)
			if err != nil {
				return err
			}
			for _, g := range list {
				if holds(g, h) {
					return a.gone(v.Name, c.RemoveVolumeGrant(ctx, g.ID))
				}
			}
			return fmt.Errorf("nothing was granted there on %s: %w", v.Name, errdefs.ErrNotFound)
		})
	f.register(cmd)
	return cmd
}

// holds reports whether a grant is exactly the holder's; no one is everyone.
func holds(g client.VolumeGrant, h holder) bool {
	var is holder
	if g.Domain != nil {
		is.domain = g.Domain.ID
	}
	if g.Project != nil {
		is.project = g.Project.ID
	}
	if g.User != nil {
		is.user = g.User.ID
	}
	return is == h && g.Everybody == (h == holder{})
}
