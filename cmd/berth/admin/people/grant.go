package people

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// scopeFlags name the scope that a role is granted on.
type scopeFlags struct {
	system                  bool
	domain, project, object string
}

func (f *scopeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.system, "system", false, "on everything")
	flags.StringVar(&f.domain, "domain", "", "on a domain and everything in it")
	flags.StringVar(&f.project, "project", "", "on a project and all in it")
	flags.StringVar(&f.object, "object", "", "on one object of any kind, by its id")
}

// scope returns the scope that the flags name, "" without flags.
func (f *scopeFlags) scope(ctx context.Context, c *client.Client) (scope client.Enum, id string, err error) {
	n := cli.CountSet(f.domain, f.project, f.object)
	if f.system {
		n++
	}
	switch {
	case n > 1:
		return "", "", cli.Usagef("choose one of --system, --domain, --project and --object")
	case f.system:
		return "SYSTEM", "", nil
	case f.domain != "":
		id, err = cli.FindDomainID(ctx, c, f.domain)
		return "DOMAIN", id, err
	case f.project != "":
		id, err = cli.FindProjectID(ctx, c, f.project)
		return "PROJECT", id, err
	case f.object != "":
		return "OBJECT", f.object, nil
	}
	return "", "", nil
}

func roleGrant(a *cli.App) *cobra.Command {
	var f scopeFlags
	cmd := a.Verb("grant ROLE USER", "Grant a user a role in a scope", cli.Args(2, 2), func(ctx context.Context, c *client.Client, args []string) error {
		var in client.GrantRoleInput
		var err error
		if in.Scope, in.ScopeID, err = f.scope(ctx, c); err != nil {
			return err
		}
		if in.Scope == "" {
			return cli.Usagef("say where: --system, --domain, --project or --object")
		}
		r, err := cli.FindRole(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.Role = r.ID
		if in.User, err = cli.FindUserID(ctx, c, args[1]); err != nil {
			return err
		}
		g, err := c.GrantRole(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(g, func() *output.Table {
			t := output.NewTable("ROLE", "HELD BY", "ON", "GRANT")
			t.Row(g.Role.Name, g.User.Email, scopeText(g.Scope.String(), g.ScopeID), g.ID)
			return t
		})
	})
	cmd.Example = "  berth admin role grant helpdesk kim@example.org --domain vision"
	f.register(cmd)
	return cmd
}

func roleRevoke(a *cli.App) *cobra.Command {
	var f scopeFlags
	cmd := a.Verb("revoke ROLE USER", "Revoke a role from a user, in one scope or in all", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			scope, id, err := f.scope(ctx, c)
			if err != nil {
				return err
			}
			r, err := cli.FindRole(ctx, c, args[0])
			if err != nil {
				return err
			}
			user, err := cli.FindUserID(ctx, c, args[1])
			if err != nil {
				return err
			}
			var held []client.RoleGrant
			for _, g := range r.Grants {
				here := scope == "" || g.Scope == scope && (g.ScopeID == nil || *g.ScopeID == id)
				if here && g.User.ID == user {
					held = append(held, g)
				}
			}
			if len(held) == 0 {
				return fmt.Errorf("%s does not hold the role %s there: %w", args[1], r.Name, errdefs.ErrNotFound)
			}
			for _, g := range held {
				_, err := c.RevokeRole(ctx, g.ID)
				if err := a.Removed(r.Name+" on "+scopeText(g.Scope.String(), g.ScopeID), err); err != nil {
					return err
				}
			}
			return nil
		})
	f.register(cmd)
	return cmd
}
