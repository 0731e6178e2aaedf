package main

import (
	"fmt"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) userCommand() *cobra.Command {
	return group("user", "Work with users", a.userList(), a.userCreate(), a.userUpdate())
}

func (a *app) userList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List users",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Users(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return a.userTable(list...) })
		},
	}
}

func (a *app) userTable(list ...client.User) *output.Table {
	t := output.NewTable("EMAIL", "NAME", "ROLE", "STATUS", "DOMAIN", "HELD", "LAST LOGIN")
	for _, u := range list {
		login := "never"
		if u.LastLoginAt != nil {
			login = output.Age(a.now(), *u.LastLoginAt) + " ago"
		}
		t.Row(u.Email, u.FullName, u.Role, u.Status, u.Domain.Name, output.Slots(u.Occupied), login)
	}
	return t
}

func (a *app) userCreate() *cobra.Command {
	var in client.CreateUserInput
	var domain string
	var projects []string
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:   "create EMAIL",
		Short: "Make a user; the password comes from a prompt, --password-stdin or $BERTH_NEW_PASSWORD",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := a.client()
			if err != nil {
				return err
			}
			in.Email = args[0]
			if in.Domain, err = domainID(cmd, c, domain); err != nil {
				return err
			}
			for _, ref := range projects {
				p, err := findProject(ctx, c, ref)
				if err != nil {
					return err
				}
				in.Projects = append(in.Projects, p.ID)
			}
			switch in.Password = a.env("BERTH_NEW_PASSWORD"); {
			case passwordStdin:
				in.Password, err = readLine(a.in)
			case in.Password == "":
				in.Password, err = a.askSecret(ctx, "Password of the new user: ")
			}
			if err != nil {
				return err
			}
			u, err := c.CreateUser(ctx, in)
			if err != nil {
				return err
			}
			return a.table(u, func() *output.Table { return a.userTable(*u) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Username, "username", "", "short name (default: from the e-mail)")
	flags.StringVar(&in.FullName, "full-name", "", "full name")
	flags.StringVar(&in.Role, "role", "", "user, admin, superadmin or monitor (default user)")
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringSliceVar(&projects, "project", nil, "projects to be a member of")
	flags.BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

// domainID finds a domain by name or id; "" is the viewer's.
func domainID(cmd *cobra.Command, c *client.Client, ref string) (string, error) {
	if ref == "" {
		who, err := c.Viewer(cmd.Context())
		if err != nil {
			return "", err
		}
		return who.User.Domain.ID, nil
	}
	all, err := c.Domains(cmd.Context(), "")
	if err != nil {
		return "", err
	}
	return findRef("domain", ref, all)
}

func (a *app) userUpdate() *cobra.Command {
	var in client.UpdateUserInput
	cmd := &cobra.Command{
		Use:   "update USER",
		Short: "Change a user's name, role or status",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if in == (client.UpdateUserInput{}) {
				return usageError{fmt.Errorf("nothing to change; use --full-name, --role or --status: %w", errdefs.ErrInvalidArgument)}
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			u, err := findUser(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			in.ID = u.ID
			if u, err = c.UpdateUser(cmd.Context(), in); err != nil {
				return err
			}
			return a.table(u, func() *output.Table { return a.userTable(*u) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.FullName, "full-name", "", "full name")
	flags.StringVar(&in.Role, "role", "", "user, admin, superadmin or monitor")
	flags.StringVar(&in.Status, "status", "", "active or inactive")
	return cmd
}
