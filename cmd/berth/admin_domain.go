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

func (a *app) domainCommand() *cobra.Command {
	return alias(group("domain", "Manage domains, the top level of ownership and limits",
		a.domainList(), a.domainShow(), a.domainCreate(), a.domainUpdate(),
		a.domainActive("activate", "Activate domains: their users can log in", true),
		a.domainActive("deactivate", "Deactivate domains: their users cannot log in, and running sessions continue", false),
		a.domainPurge()), "domains")
}

func (a *app) domainList() *cobra.Command {
	return a.list("List domains", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Domains(ctx, "")
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return domainTable(list...) })
	})
}

func domainTable(list ...client.Domain) *output.Table {
	t := output.NewTable("NAME", "STATE", "PROJECTS", "USERS", "POLICIES", "HELD", "DESCRIPTION").Spare("DESCRIPTION", "HELD")
	for _, d := range list {
		t.Row(d.Name, activity(d.Active), strconv.Itoa(d.Projects.TotalCount), strconv.Itoa(d.Users.TotalCount),
			policiesText(d.Policies), output.Slots(d.Occupied), d.Description)
	}
	return t
}

func (a *app) domainShow() *cobra.Command {
	return a.verb("show DOMAIN", "Show a domain and its rules", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		d, err := findDomain(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.showDomain(d)
	})
}

func (a *app) showDomain(d *client.Domain) error {
	return a.print().Print(d, func() error {
		s := a.sheet()
		s.fact("Name", d.Name)
		s.fact("ID", d.ID)
		s.fact("State", activity(d.Active).Text)
		s.fact("Description", d.Description)
		s.fact("Projects", strconv.Itoa(d.Projects.TotalCount))
		s.fact("Users", strconv.Itoa(d.Users.TotalCount))
		s.fact("Policies", policiesText(d.Policies))
		s.fact("Held", output.Slots(d.Occupied))
		s.fact("Registries", registriesText(d))
		s.fact("Passwords", passwordsText(d))
		s.fact("2nd factor", map[bool]string{true: "required", false: "optional"}[d.TOTPRequired])
		s.fact("Sign-up", d.SignUp)
		s.fact("Created", a.moment(&d.CreatedAt))
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
	return names(d.Registries)
}

func passwordsText(d *client.Domain) string {
	text := fmt.Sprintf("at least %d characters", d.PasswordMinLength)
	if d.PasswordMaxAgeDays > 0 {
		text += fmt.Sprintf(", for %d days", d.PasswordMaxAgeDays)
	}
	return text
}

func (a *app) domainCreate() *cobra.Command {
	var in client.CreateDomainInput
	var policy string
	cmd := a.verb("create NAME", "Create a domain", count(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if in.Policy, err = findPolicyID(ctx, c, policy); err != nil {
			return err
		}
		d, err := c.CreateDomain(ctx, in)
		if err != nil {
			return err
		}
		return a.table(d, func() *output.Table { return domainTable(*d) })
	})
	cmd.Example = "  berth admin domain create vision --description 'The vision lab' --policy lab"
	cmd.Flags().StringVar(&in.Description, "description", "", "its purpose")
	cmd.Flags().StringVar(&policy, "policy", "", "resource policy that binds all in it")
	return cmd
}

func (a *app) domainUpdate() *cobra.Command {
	var in client.UpdateDomainInput
	var registries []string
	cmd := a.verb("update DOMAIN", "Change a domain's name or rules", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if registries == nil {
			if err := changes(in); err != nil {
				return err
			}
		}
		d, err := findDomain(ctx, c, args[0])
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
		return a.showDomain(d)
	})
	cmd.Example = `  berth admin domain update vision --registries hub,lab --totp-required
  berth admin domain update vision --sign-up invitation --password-max-age 180`
	givenText(cmd, &in.Name, "name", "another `name`")
	givenText(cmd, &in.Description, "description", "its purpose, a `text`")
	givenWords(cmd, &registries, "registries", "registries whose images its users may start, `names` with commas between; all or none")
	givenBool(cmd, &in.TOTPRequired, "totp-required", "every user must have a second factor (=false: optional)")
	givenCount(cmd, &in.PasswordMinLength, "password-min-length", "least `number` of characters of a password")
	givenCount(cmd, &in.PasswordMaxAgeDays, "password-max-age", "`days` until a password must be changed; 0 = never")
	parsed(cmd, &in.SignUp, "sign-up", "how people may sign up: `off`, invitation or approval", choice("off", "invitation", "approval"))
	sets(cmd, "password-max-age", "passwordMaxAgeDays")
	return cmd
}

// setRegistries finds the registries that a domain is to be open to.
func setRegistries(ctx context.Context, c *client.Client, in *client.UpdateDomainInput, names []string) error {
	if names == nil {
		return nil
	}
	if strings.Join(names, ",") == "all" {
		in.RegistriesRestricted = ptr(false)
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
		id, err := findRef("registry", name, refs)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	in.RegistriesRestricted, in.Registries = ptr(true), ids
	return nil
}

func (a *app) domainActive(name, short string, active bool) *cobra.Command {
	return a.onEach(name+" DOMAIN", short, findDomainID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateDomain(ctx, client.UpdateDomainInput{ID: id, Active: &active})
		return err
	})
}

func (a *app) domainPurge() *cobra.Command {
	var yes bool
	cmd := a.verb("purge DOMAIN", "Remove an empty domain permanently", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		d, err := findDomain(ctx, c, args[0])
		if err != nil {
			return err
		}
		if err := a.confirm(ctx, "domain", d.Name, yes); err != nil {
			return err
		}
		return a.gone(d.Name, c.PurgeDomain(ctx, d.ID, d.Name))
	})
	yesFlag(cmd, &yes)
	return cmd
}
