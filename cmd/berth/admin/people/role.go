package people

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/access"
)

// RoleCommand returns the command "berth admin role".
func RoleCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("role", "Manage custom roles, which grant more permissions",
		roleList(a), roleShow(a), roleCreate(a), roleUpdate(a), roleDelete(a), roleGrant(a), roleRevoke(a))
	cmd.Long = `Manage custom roles. A role is a set of permissions: operations on kinds of
objects. It is granted to users in the scope of the system, a domain, a project
or one object.

--allow takes ENTITY=OPERATION[,OPERATION...]; repeat it for each kind of object:
  operations  read, create, update, delete, those below, or all
  entities    ` + entityNames() + `

These operations exist only on some kinds of objects:
  session                        enter
  vfolder                        read_files, write_files
  user                           impersonate
  project                        manage_members
  role, resource_group, volume   grant
  object_storage                 transfer`
	return cli.Alias(cmd, "roles")
}

// entityNames lists the kinds of objects, several per line.
func entityNames() string {
	var lines, line []string
	for _, e := range access.Entities() {
		if line = append(line, string(e)); len(line) == 4 {
			lines, line = append(lines, strings.Join(line, ", ")), nil
		}
	}
	return strings.Join(append(lines, strings.Join(line, ", ")), ",\n              ")
}

func roleList(a *cli.App) *cobra.Command {
	return a.List("List custom roles", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Roles(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return roleTable(list...) })
	})
}

func roleTable(list ...client.Role) *output.Table {
	t := output.NewTable("NAME", "ALLOWS", "HELD BY", "DESCRIPTION")
	for _, r := range list {
		t.Row(r.Name, allowsText(r.Allows), holdersText(r.Grants), r.Description)
	}
	return t
}

func allowsText(list []client.RolePermission) string {
	var all []string
	for _, p := range list {
		all = append(all, p.Entity.String()+"="+strings.Join(cli.EnumTexts(p.Operations), ","))
	}
	return strings.Join(all, " ")
}

// holdersText lists the users with a role, each user once.
func holdersText(grants []client.RoleGrant) string {
	var all []string
	for _, g := range grants {
		if !slices.Contains(all, g.User.Email) {
			all = append(all, g.User.Email)
		}
	}
	return strings.Join(all, ", ")
}

// scopeText names the scope that a role is granted on.
func scopeText(scope string, id *string) string {
	if id == nil {
		return "the " + scope
	}
	return scope + " " + *id
}

func roleShow(a *cli.App) *cobra.Command {
	return a.Verb("show ROLE", "Show a custom role and its grants", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		r, err := cli.FindRole(ctx, c, args[0])
		if err != nil {
			return err
		}
		p := a.Printer()
		return p.Print(r, func() error {
			s := a.Sheet()
			s.Fact("Name", r.Name)
			s.Fact("ID", r.ID)
			s.Fact("Description", r.Description)
			for _, one := range r.Allows {
				s.Fact("Allows", one.Entity.String()+": "+strings.Join(cli.EnumTexts(one.Operations), ", "))
			}
			s.Fact("Created", a.Moment(&r.CreatedAt))
			s.Gap()
			t := output.NewTable("HELD BY", "ON", "GRANT")
			for _, g := range r.Grants {
				t.Row(g.User.Email, scopeText(g.Scope.String(), g.ScopeID), g.ID)
			}
			return p.Write(t)
		})
	})
}

func operationNames(operations []access.Operation) string {
	var list []string
	for _, op := range operations {
		list = append(list, string(op))
	}
	return strings.Join(list, ", ")
}

// parsePermission reads entity=operation,operation.
func parsePermission(text string) (p client.RolePermissionInput, err error) {
	entity, operations, ok := strings.Cut(text, "=")
	if !ok {
		return p, fmt.Errorf("write entity=operation,operation, for example session=read,update")
	}
	p.Entity = cli.Enum(entity)
	kind := access.Entity(p.Entity.String())
	if !slices.Contains(access.Entities(), kind) {
		return p, fmt.Errorf("there are no objects of the kind %q", entity)
	}
	if operations == "all" {
		for _, op := range access.OperationsOn(kind) {
			p.Operations = append(p.Operations, cli.Enum(string(op)))
		}
		return p, nil
	}
	for _, w := range cli.Words(operations) {
		value := cli.Enum(w)
		if on := access.OperationsOn(kind); !slices.Contains(on, access.Operation(value.String())) {
			return p, fmt.Errorf("%q is not an operation on %s; choose from %s, or all", w, p.Entity, operationNames(on))
		}
		p.Operations = append(p.Operations, value)
	}
	if len(p.Operations) == 0 {
		return p, fmt.Errorf("name at least one operation of %s", entity)
	}
	return p, nil
}

func allowFlag(cmd *cobra.Command, into *[]client.RolePermissionInput) {
	cmd.Flags().Func("allow", "`permissions` on one kind of object, such as session=read,update (repeatable)", func(text string) error {
		p, err := parsePermission(text)
		if err == nil {
			*into = append(*into, p)
		}
		return err
	})
	cli.SetsField(cmd, "allow", "allows")
}

func roleCreate(a *cli.App) *cobra.Command {
	var in client.CreateRoleInput
	cmd := a.Verb("create NAME", "Create a custom role", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if in.Name = args[0]; len(in.Allows) == 0 {
			return cli.Usagef("set --allow to the permissions of the role")
		}
		r, err := c.CreateRole(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(r, func() *output.Table { return roleTable(*r) })
	})
	cmd.Example = "  berth admin role create helpdesk --allow user=read,update --allow session=read,delete"
	cmd.Flags().StringVar(&in.Description, "description", "", "its purpose")
	allowFlag(cmd, &in.Allows)
	return cmd
}

func roleUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateRoleInput
	cmd := a.Verb("update ROLE", "Change a custom role for everyone who has it", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		r, err := cli.FindRole(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = r.ID
		if r, err = c.UpdateRole(ctx, in); err != nil {
			return err
		}
		return a.Table(r, func() *output.Table { return roleTable(*r) })
	})
	cmd.Long = "Change a custom role for everyone who has it. --allow replaces all of its\npermissions."
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalText(cmd, &in.Description, "description", "its purpose, a `text`")
	allowFlag(cmd, &in.Allows)
	return cmd
}

func roleDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete ROLE", "Remove custom roles, with all grants of them", cli.FindRoleID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteRole(ctx, id) }), "rm")
}
