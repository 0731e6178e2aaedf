package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

var (
	userRoles    = []string{"user", "admin", "superadmin", "monitor"}
	userStatuses = []string{"active", "inactive", "before_verification", "deleted"}
)

func (a *app) userCommand() *cobra.Command {
	cmd := group("user", "Manage users",
		a.userList(), a.userShow(), a.userCreate(), a.userImport(), a.userUpdate(),
		a.userStatus("activate", "Activate users: they can log in", "active"),
		a.userStatus("deactivate", "Deactivate users: logins and credentials end, and running sessions continue", "inactive"),
		a.userResetPassword(), a.userResetTOTP(), a.userPurge())
	cmd.Long = "Manage users. USER is an e-mail address, a username or an ID."
	return alias(cmd, "users")
}

func (a *app) userList() *cobra.Command {
	var f client.UserFilter
	var role, status *string
	var domain string
	cmd := a.list("List users", func(ctx context.Context, c *client.Client, _ []string) error {
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
		return a.table(list, func() *output.Table { return a.userTable(list...) })
	})
	given(cmd, &role, "role", "only with this `role`: user, admin, superadmin or monitor", choice(userRoles...))
	given(cmd, &status, "status", "only in this `status`: active, inactive, before-verification or deleted", choice(userStatuses...))
	cmd.Flags().StringVar(&domain, "domain", "", "only those of this domain")
	return cmd
}

func (a *app) userTable(list ...client.User) *output.Table {
	t := output.NewTable("EMAIL", "NAME", "ROLE", "STATUS", "DOMAIN", "POLICIES", "HELD", "LAST LOGIN").Spare("HELD", "POLICIES", "LAST LOGIN", "NAME")
	for _, u := range list {
		status := output.Cell{Text: sentence(u.Status), Color: output.Green}
		if u.Status != "active" {
			status.Color = output.Yellow
		}
		t.Row(u.Email, u.FullName, u.Role, status, u.Domain.Name, policiesText(u.Policies), output.Slots(u.Occupied), a.ago(u.LastLoginAt))
	}
	return t
}

func (a *app) userShow() *cobra.Command {
	return a.verb("show USER", "Show a user, their projects and permissions", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := findUserID(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.showUser(ctx, c, id)
	})
}

func (a *app) showUser(ctx context.Context, c *client.Client, id string) error {
	u, err := c.User(ctx, id)
	if err != nil {
		return err
	}
	return a.print().Print(u, func() error { return a.describeUser(u) })
}

func (a *app) describeUser(u *client.UserDetail) error {
	s := a.sheet()
	s.fact("E-mail", u.Email)
	s.fact("ID", u.ID)
	s.fact("Name", u.FullName)
	s.fact("Username", u.Username)
	s.fact("Role", u.Role)
	s.fact("Status", sentence(u.Status))
	s.fact("Domain", u.Domain.Name)
	for _, m := range u.Memberships {
		text := m.Project.Name
		if m.Admin {
			text += " (admin)"
		}
		s.fact("Project", text)
	}
	for _, g := range u.RoleGrants {
		s.fact("Custom role", g.Role.Name+" on "+scopeText(g.Scope, g.ScopeID))
	}
	for _, at := range u.Policies {
		s.fact("Policy", at.Policy.Name+narrowing(at.ResourceGroup, at.WithinProject))
	}
	s.fact("Held", output.Slots(u.Occupied))
	if acc := u.Account; acc != nil {
		s.fact("2nd factor", map[bool]string{true: "on", false: "off"}[acc.TOTPEnabledAt != nil])
		s.fact("Password of", a.moment(acc.PasswordChangedAt))
		if acc.PasswordChangeRequired {
			s.fact("Due", "a new password at the next login")
		}
		s.fact("Comes from", strings.Join(acc.AllowedAddresses, ", "))
		s.fact("In sessions", containerText(acc.ContainerUID, acc.ContainerGID, acc.ContainerGIDs))
	}
	s.fact("Created", a.moment(&u.CreatedAt))
	s.fact("Last login", a.moment(u.LastLoginAt))
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

func (a *app) userCreate() *cobra.Command {
	var in client.CreateUserInput
	var role *string
	var domain, policy string
	var projects []string
	var passwordStdin bool
	cmd := a.verb("create EMAIL", "Create a user", count(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Email = args[0]
		if role != nil {
			in.Role = *role
		}
		if in.Domain, err = domainOrMine(ctx, c, domain); err != nil {
			return err
		}
		if in.Policy, err = findPolicyID(ctx, c, policy); err != nil {
			return err
		}
		if in.Projects, err = findProjectIDs(ctx, c, projects); err != nil {
			return err
		}
		if in.Password, err = a.passwordOfOther(ctx, passwordStdin); err != nil {
			return err
		}
		u, err := c.CreateUser(ctx, in)
		if err != nil {
			return err
		}
		return a.table(u, func() *output.Table { return a.userTable(*u) })
	})
	cmd.Long = `Create a user. The password comes from standard input with --password-stdin, else
from $BERTH_NEW_PASSWORD, else from a prompt. To create many users, run berth
admin user import.`
	flags := cmd.Flags()
	flags.StringVar(&in.Username, "username", "", "short name (default: from the e-mail)")
	flags.StringVar(&in.FullName, "full-name", "", "full name")
	given(cmd, &role, "role", "`role`: user (default), admin, superadmin or monitor", choice(userRoles...))
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringSliceVar(&projects, "project", nil, "projects to be a member of")
	flags.StringVar(&policy, "policy", "", "resource policy of the user")
	flags.BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func (a *app) passwordOfOther(ctx context.Context, stdin bool) (string, error) {
	if stdin {
		return readLine(a.in)
	}
	if password := a.env("BERTH_NEW_PASSWORD"); password != "" {
		return password, nil
	}
	return a.askNewPassword(ctx, "--password-stdin or BERTH_NEW_PASSWORD")
}

func (a *app) userUpdate() *cobra.Command {
	var in client.UpdateUserInput
	var role, status, policy *string
	cmd := a.verb("update USER", "Change a user", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if role != nil {
			in.Role = *role
		}
		if status != nil {
			in.Status = *status
		}
		if policy != nil {
			in.Policy = *policy
		}
		if err := changes(in); err != nil {
			return err
		}
		id, err := findUserID(ctx, c, args[0])
		if err != nil {
			return err
		}
		if in.ID = id; in.Policy == "none" {
			in.Policy, in.ClearPolicy = "", ptr(true)
		}
		if in.Policy, err = findPolicyID(ctx, c, in.Policy); err != nil {
			return err
		}
		if _, err := c.UpdateUser(ctx, in); err != nil {
			return err
		}
		return a.showUser(ctx, c, id)
	})
	givenText(cmd, &in.FullName, "full-name", "full `name`")
	givenText(cmd, &in.Username, "username", "short `name`")
	given(cmd, &role, "role", "`role`: user, admin, superadmin or monitor", choice(userRoles...))
	given(cmd, &status, "status", "`status`: active, inactive, before-verification or deleted", choice(userStatuses...))
	givenText(cmd, &policy, "policy", "resource `policy` of the user, or none")
	givenWords(cmd, &in.AllowedAddresses, "addresses", "`networks` from which the user may log in, separated by commas, such as 10.0.0.0/8; none for all")
	givenBool(cmd, &in.PasswordChangeRequired, "change-password", "the user must choose a new password at the next login (=false: keep it)")
	givenBool(cmd, &in.KeepCredentials, "keep-credentials", "with another --status than active: leave access tokens, keypairs and SSH keys for when the user is active again")
	givenCount(cmd, &in.ContainerUID, "uid", "user `ID` in the user's sessions")
	givenCount(cmd, &in.ContainerGID, "gid", "group `ID` in the user's sessions")
	parsed(cmd, &in.ContainerGIDs, "groups", "further group `IDs` in the user's sessions, separated by commas, or none", parseCounts)
	givenBool(cmd, &in.ClearContainer, "no-ids", "take --uid, --gid and --groups away")
	sets(cmd, "addresses", "allowedAddresses")
	sets(cmd, "change-password", "passwordChangeRequired")
	sets(cmd, "uid", "containerUid")
	sets(cmd, "gid", "containerGid")
	sets(cmd, "groups", "containerGids")
	sets(cmd, "no-ids", "clearContainer")
	return cmd
}

func (a *app) userStatus(name, short, status string) *cobra.Command {
	keep := false
	cmd := a.onEach(name+" USER", short, findUserID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateUser(ctx, client.UpdateUserInput{ID: id, Status: status, KeepCredentials: &keep})
		return err
	})
	if status != "active" {
		cmd.Flags().BoolVar(&keep, "keep-credentials", false, "leave access tokens, keypairs and SSH keys for when the user is active again")
	}
	return cmd
}
