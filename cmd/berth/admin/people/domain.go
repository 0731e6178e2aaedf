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

// DomainCommand returns the command "berth admin domain".
func DomainCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("domain", "Manage domains, the top level of ownership and limits",
		domainList(a), domainShow(a), domainCreate(a), domainUpdate(a),
		domainActive(a, "activate", "Activate domains: their users can log in", true),
		domainActive(a, "deactivate", "Deactivate domains: their users cannot log in, and running sessions continue", false),
		domainPurge(a)), "domains")
}

func domainList(a *cli.App) *cobra.Command {
	return a.List("List domains", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Domains(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return domainTable(list...) })
	})
}

func domainTable(list ...client.Domain) *output.Table {
	t := output.NewTable("NAME", "STATE", "PROJECTS", "USERS", "POLICIES", "HELD", "DESCRIPTION").Spare("DESCRIPTION", "HELD")
	for _, d := range list {
		t.Row(d.Name, cli.ActiveCell(d.Active), strconv.Itoa(d.Projects.TotalCount), strconv.Itoa(d.Users.TotalCount),
			cli.PoliciesText(d.Policies), output.Slots(d.Occupied), d.Description)
	}
	return t
}

func domainShow(a *cli.App) *cobra.Command {
	return a.Verb("show DOMAIN", "Show a domain and its rules", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		d, err := cli.FindDomain(ctx, c, args[0])
		if err != nil {
			return err
		}
		return showDomain(a, d)
	})
}

func showDomain(a *cli.App, d *client.Domain) error {
	return a.Printer().Print(d, func() error {
		s := a.Sheet()
		s.Fact("Name", d.Name)
		s.Fact("ID", d.ID)
		s.Fact("State", cli.ActiveCell(d.Active).Text)
		s.Fact("Description", d.Description)
		s.Fact("Projects", strconv.Itoa(d.Projects.TotalCount))
		s.Fact("Users", strconv.Itoa(d.Users.TotalCount))
		s.Fact("Policies", cli.PoliciesText(d.Policies))
		s.Fact("Held", output.Slots(d.Occupied))
		s.Fact("Registries", registriesText(d))
		s.Fact("Passwords", passwordsText(d))
		s.Fact("2nd factor", map[bool]string{true: "required", false: "optional"}[d.TOTPRequired])
		s.Fact("Sign-up", d.SignUp.String())
		s.Fact("Created", a.Moment(&d.CreatedAt))
		return nil
	})
}

func registriesText(d *client.Domain) string {
	if !d.RegistriesRestricted {
		return "all"
	}
	if len(d.Registries) == 0 {
		return "none"
	}
	return cli.Names(d.Registries)
}

func passwordsText(d *client.Domain) string {
	text := fmt.Sprintf("at least %d characters", d.PasswordMinLength)
	if d.PasswordMaxAgeDays > 0 {
		text += fmt.Sprintf(", for %d days", d.PasswordMaxAgeDays)
	}
	return text
}

func domainCreate(a *cli.App) *cobra.Command {
	var in client.CreateDomainInput
	var policy string
	cmd := a.Verb("create NAME", "Create a domain", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if in.Policy, err = cli.FindPolicyID(ctx, c, policy); err != nil {
			return err
		}
		d, err := c.CreateDomain(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(d, func() *output.Table { return domainTable(*d) })
	})
	cmd.Example = "  berth admin domain create vision --description 'The vision lab' --policy lab"
	cmd.Flags().StringVar(&in.Description, "description", "", "its purpose")
	cmd.Flags().StringVar(&policy, "policy", "", "resource policy that binds all in it")
	return cmd
}

func domainUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateDomainInput
	var registries []string
	cmd := a.Verb("update DOMAIN", "Change a domain's name or rules", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if registries == nil {
			if err := cli.RequireChanges(in); err != nil {
				return err
			}
		}
		d, err := cli.FindDomain(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = d.ID
		if err := setRegistries(ctx, c, &in, registries); err != nil {
			return err
		}
		if d, err = c.UpdateDomain(ctx, in); err != nil {
			return err
		}
		return showDomain(a, d)
	})
	cmd.Example = `  berth admin domain update vision --registries hub,lab --totp-required
  berth admin domain update vision --sign-up invitation --password-max-age 180`
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalText(cmd, &in.Description, "description", "its purpose, a `text`")
	cli.WordsFlag(cmd, &registries, "registries", "registries whose images its users may start, `names` with commas between; all or none")
	cli.OptionalBool(cmd, &in.TOTPRequired, "totp-required", "every user must have a second factor (=false: optional)")
	cli.OptionalCount(cmd, &in.PasswordMinLength, "password-min-length", "least `number` of characters of a password")
	cli.OptionalCount(cmd, &in.PasswordMaxAgeDays, "password-max-age", "`days` until a password must be changed; 0 = never")
	cli.ParsedFlag(cmd, &in.SignUp, "sign-up", "how people may sign up: `off`, invitation or approval", cli.Choice("off", "invitation", "approval"))
	cli.SetsField(cmd, "password-max-age", "passwordMaxAgeDays")
	return cmd
}

// setRegistries finds the registries that a domain will have access to.
func setRegistries(ctx context.Context, c *client.Client, in *client.UpdateDomainInput, names []string) error {
	if names == nil {
		return nil
	}
	if strings.Join(names, ",") == "all" {
		in.RegistriesRestricted = cli.Ptr(false)
		return nil
	}
	all, err := c.Registries(ctx)
	if err != nil {
		return err
	}
	refs := make([]client.Ref, 0, len(all))
	for _, r := range all {
		refs = append(refs, client.Ref{ID: r.ID, Name: r.Name})
	}
	ids := []string{}
	for _, name := range names {
		id, err := cli.FindRef("registry", name, refs)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	in.RegistriesRestricted, in.Registries = cli.Ptr(true), ids
	return nil
}

func domainActive(a *cli.App, name, short string, active bool) *cobra.Command {
	return a.OnEach(name+" DOMAIN", short, cli.FindDomainID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateDomain(ctx, client.UpdateDomainInput{ID: id, Active: &active})
		return err
	})
}

func domainPurge(a *cli.App) *cobra.Command {
	var yes bool
	cmd := a.Verb("purge DOMAIN", "Remove an empty domain permanently", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		d, err := cli.FindDomain(ctx, c, args[0])
		if err != nil {
			return err
		}
		if err := a.Confirm(ctx, "domain", d.Name, yes); err != nil {
			return err
		}
		return a.Removed(d.Name, c.DeleteDomain(ctx, d.ID, d.Name))
	})
	cli.YesFlag(cmd, &yes)
	return cmd
}
