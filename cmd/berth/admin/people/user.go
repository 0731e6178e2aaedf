// Package people has the commands about users, domains, projects, roles, invitations
// and identity providers.
package people

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

var (
	userRoles    = []string{"user", "admin", "superadmin", "monitor"}
	userStatuses = []string{"active", "inactive", "before_verification", "deleted"}
)

// UserCommand returns the command "berth admin user".
func UserCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("user", "Manage users",
		userList(a), userShow(a), userCreate(a), userImport(a), userUpdate(a),
		userStatus(a, "activate", "Activate users: they can log in", "ACTIVE"),
		userStatus(a, "deactivate", "Deactivate users: logins and credentials end, and running sessions continue", "INACTIVE"),
		userResetPassword(a), userResetTOTP(a), userPurge(a))
	cmd.Long = "Manage users. USER is an e-mail address, a username or an ID."
	return cli.Alias(cmd, "users")
}

func userList(a *cli.App) *cobra.Command {
	var f client.UserFilter
	var role, status *client.Enum
	var domain string
	cmd := a.List("List users", func(ctx context.Context, c *client.Client, _ []string) error {
		if role != nil {
			f.Role = *role
		}
		if status != nil {
			f.Status = *status
		}
		list, err := c.Users(ctx, f)
		if err != nil {
			return err
		}
		if list, err = inDomain(ctx, c, domain, list, func(u client.User) string { return u.Domain.ID }); err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return userTable(a, list...) })
	})
	cli.OptionalFlag(cmd, &role, "role", "only with this `role`: user, admin, superadmin or monitor", cli.Choice(userRoles...))
	cli.OptionalFlag(cmd, &status, "status", "only in this `status`: active, inactive, before-verification or deleted", cli.Choice(userStatuses...))
	cmd.Flags().StringVar(&domain, "domain", "", "only those of this domain")
	return cmd
}

func userTable(a *cli.App, list ...client.User) *output.Table {
	t := output.NewTable("EMAIL", "NAME", "ROLE", "STATUS", "DOMAIN", "POLICIES", "HELD", "LAST LOGIN").Spare("HELD", "POLICIES", "LAST LOGIN", "NAME")
	for _, u := range list {
		status := output.Cell{Text: cli.Sentence(u.Status.String()), Color: output.Green}
		if u.Status != "ACTIVE" {
			status.Color = output.Yellow
		}
		t.Row(u.Email, u.FullName, u.Role, status, u.Domain.Name, cli.PoliciesText(u.Policies), output.Slots(u.Occupied), a.Ago(u.LastLoginAt))
	}
	return t
}

func userShow(a *cli.App) *cobra.Command {
	return a.Verb("show USER", "Show a user, their projects and permissions", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := cli.FindUserID(ctx, c, args[0])
		if err != nil {
			return err
		}
		return ShowUser(ctx, a, c, id)
	})
}

// ShowUser prints a user with everything that the viewer may see of them.
func ShowUser(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	u, err := c.User(ctx, id)
	if err != nil {
		return err
	}
	return a.Printer().Print(u, func() error { return describeUser(a, u) })
}

func describeUser(a *cli.App, u *client.UserDetail) error {
	s := a.Sheet()
	s.Fact("E-mail", u.Email)
	s.Fact("ID", u.ID)
	s.Fact("Name", u.FullName)
	s.Fact("Username", u.Username)
	s.Fact("Role", u.Role.String())
	s.Fact("Status", cli.Sentence(u.Status.String()))
	s.Fact("Domain", u.Domain.Name)
	for _, m := range u.Memberships {
		text := m.Project.Name
		if m.Admin {
			text += " (admin)"
		}
		s.Fact("Project", text)
	}
	for _, g := range u.RoleGrants {
		s.Fact("Custom role", g.Role.Name+" on "+scopeText(g.Scope.String(), g.ScopeID))
	}
	for _, at := range u.Policies {
		s.Fact("Policy", at.Policy.Name+cli.Narrowing(at.ResourceGroup, at.WithinProject))
	}
	s.Fact("Held", output.Slots(u.Occupied))
	if acc := u.Account; acc != nil {
		s.Fact("2nd factor", map[bool]string{true: "on", false: "off"}[acc.TOTPEnabledAt != nil])
		s.Fact("Password of", a.Moment(acc.PasswordChangedAt))
		if acc.PasswordChangeRequired {
			s.Fact("Due", "a new password at the next login")
		}
		s.Fact("Comes from", strings.Join(acc.AllowedAddresses, ", "))
		s.Fact("In sessions", containerText(acc.ContainerUID, acc.ContainerGID, acc.ContainerGIDs))
	}
	s.Fact("Created", a.Moment(&u.CreatedAt))
	s.Fact("Last login", a.Moment(u.LastLoginAt))
	return nil
}

func containerText(uid, gid *int, gids []int) string {
	var parts []string
	if uid != nil {
		parts = append(parts, "uid "+strconv.Itoa(*uid))
	}
	if gid != nil {
		parts = append(parts, "gid "+strconv.Itoa(*gid))
	}
	if len(gids) > 0 {
		parts = append(parts, "groups "+strings.Trim(fmt.Sprint(gids), "[]"))
	}
	return strings.Join(parts, ", ")
}

func userCreate(a *cli.App) *cobra.Command {
	var in client.CreateUserInput
	var role *client.Enum
	var domain, policy string
	var projects []string
	var passwordStdin bool
	cmd := a.Verb("create EMAIL", "Create a user", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Email = args[0]
		if role != nil {
			in.Role = *role
		}
		if in.Domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
			return err
		}
		if in.Policy, err = cli.FindPolicyID(ctx, c, policy); err != nil {
			return err
		}
		if in.Projects, err = cli.FindProjectIDs(ctx, c, projects); err != nil {
			return err
		}
		if in.Password, err = passwordOfOther(ctx, a, passwordStdin); err != nil {
			return err
		}
		u, err := c.CreateUser(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(u, func() *output.Table { return userTable(a, *u) })
	})
	cmd.Long = `Create a user. The password comes from standard input with --password-stdin, else
from $BERTH_NEW_PASSWORD, else from a prompt. To create many users, run berth
admin user import.`
	flags := cmd.Flags()
	flags.StringVar(&in.Username, "username", "", "short name (default: from the e-mail)")
	flags.StringVar(&in.FullName, "full-name", "", "full name")
	cli.OptionalFlag(cmd, &role, "role", "`role`: user (default), admin, superadmin or monitor", cli.Choice(userRoles...))
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringSliceVar(&projects, "project", nil, "projects to be a member of")
	flags.StringVar(&policy, "policy", "", "resource policy of the user")
	flags.BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func passwordOfOther(ctx context.Context, a *cli.App, stdin bool) (string, error) {
	if stdin {
		return cli.ReadLine(a.In)
	}
	if password := a.Env("BERTH_NEW_PASSWORD"); password != "" {
		return password, nil
	}
	return a.AskNewPassword(ctx, "--password-stdin or BERTH_NEW_PASSWORD")
}

func userUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateUserInput
	var role, status *client.Enum
	var policy *string
	cmd := a.Verb("update USER", "Change a user", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if role != nil {
			in.Role = *role
		}
		if status != nil {
			in.Status = *status
		}
		if policy != nil {
			in.Policy = *policy
		}
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		id, err := cli.FindUserID(ctx, c, args[0])
		if err != nil {
			return err
		}
		if in.ID = id; in.Policy == "none" {
			in.Policy, in.ClearPolicy = "", cli.Ptr(true)
		}
		if in.Policy, err = cli.FindPolicyID(ctx, c, in.Policy); err != nil {
			return err
		}
		if _, err := c.UpdateUser(ctx, in); err != nil {
			return err
		}
		return ShowUser(ctx, a, c, id)
	})
	cli.OptionalText(cmd, &in.FullName, "full-name", "full `name`")
	cli.OptionalText(cmd, &in.Username, "username", "short `name`")
	cli.OptionalFlag(cmd, &role, "role", "`role`: user, admin, superadmin or monitor", cli.Choice(userRoles...))
	cli.OptionalFlag(cmd, &status, "status", "`status`: active, inactive, before-verification or deleted", cli.Choice(userStatuses...))
	cli.OptionalText(cmd, &policy, "policy", "resource `policy` of the user, or none")
	cli.WordsFlag(cmd, &in.AllowedAddresses, "addresses", "`networks` from which the user may log in, separated by commas, such as 10.0.0.0/8; none for all")
	cli.OptionalBool(cmd, &in.PasswordChangeRequired, "change-password", "the user must choose a new password at the next login (=false: keep it)")
	cli.OptionalBool(cmd, &in.KeepCredentials, "keep-credentials", "with another --status than active: leave access tokens, keypairs and SSH keys for when the user is active again")
	cli.OptionalCount(cmd, &in.ContainerUID, "uid", "user `ID` in the user's sessions")
	cli.OptionalCount(cmd, &in.ContainerGID, "gid", "group `ID` in the user's sessions")
	cli.ParsedFlag(cmd, &in.ContainerGIDs, "groups", "further group `IDs` in the user's sessions, separated by commas, or none", cli.ParseCounts)
	cli.OptionalBool(cmd, &in.ClearContainer, "no-ids", "take --uid, --gid and --groups away")
	cli.SetsField(cmd, "addresses", "allowedAddresses")
	cli.SetsField(cmd, "change-password", "passwordChangeRequired")
	cli.SetsField(cmd, "uid", "containerUid")
	cli.SetsField(cmd, "gid", "containerGid")
	cli.SetsField(cmd, "groups", "containerGids")
	cli.SetsField(cmd, "no-ids", "clearContainer")
	return cmd
}

func userStatus(a *cli.App, name, short string, status client.Enum) *cobra.Command {
	keep := false
	cmd := a.OnEach(name+" USER", short, cli.FindUserID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateUser(ctx, client.UpdateUserInput{ID: id, Status: status, KeepCredentials: &keep})
		return err
	})
	if status != "ACTIVE" {
		cmd.Flags().BoolVar(&keep, "keep-credentials", false, "leave access tokens, keypairs and SSH keys for when the user is active again")
	}
	return cmd
}
