package main

import (
	"context"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) providerCommand() *cobra.Command {
	return alias(group("provider", "Manage identity providers for login (OpenID Connect)",
		a.providerList(), a.providerCreate(), a.providerUpdate(),
		a.providerActive("activate", "Activate providers: users can log in with them", true),
		a.providerActive("deactivate", "Deactivate providers: users cannot log in with them", false),
		a.providerDelete()), "providers")
}

func (a *app) providerList() *cobra.Command {
	return a.list("List identity providers", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.IdentityProviders(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return providerTable(list...) })
	})
}

func providerTable(list ...client.IdentityProvider) *output.Table {
	t := output.NewTable("NAME", "STATE", "ISSUER", "CLIENT", "DOMAIN", "MAKES USERS OF").Spare("CLIENT")
	for _, p := range list {
		makes := "no"
		if p.AutoProvision {
			makes = strings.Join(p.EmailDomains, ", ")
			if p.Project != nil {
				makes += " in " + p.Project.Name
			}
		}
		t.Row(p.Name, activity(p.Active), p.Issuer, p.ClientID, p.Domain.Name, makes)
	}
	return t
}

func findProvider(ctx context.Context, c *client.Client, ref string) (*client.IdentityProvider, error) {
	all, err := c.IdentityProviders(ctx)
	return pick(ctx, c, "identity provider", ref, all, err, func(p client.IdentityProvider) (id, name string) { return p.ID, p.Name })
}

func findProviderID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.IdentityProvider, error) { return findProvider(ctx, c, ref) }, func(p *client.IdentityProvider) string { return p.ID })
}

// clientSecret is what the issuer knows us by.
func (a *app) clientSecret(ctx context.Context, stdin bool) (string, error) {
	if stdin {
		return readLine(a.in)
	}
	if secret := a.env("BERTH_CLIENT_SECRET"); secret != "" {
		return secret, nil
	}
	return a.askSecret(ctx, "Client secret: ", "--client-secret-stdin or BERTH_CLIENT_SECRET")
}

func (a *app) providerCreate() *cobra.Command {
	var in client.CreateIdentityProviderInput
	var domain, project string
	var stdin bool
	cmd := a.verb("create NAME", "Add an OpenID Connect issuer for login", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in.Name = args[0]
			for flag, value := range map[string]string{"--issuer": in.Issuer, "--client-id": in.ClientID} {
				if value == "" {
					return usagef("%s is missing", flag)
				}
			}
			if in.Domain, err = domainOrMine(ctx, c, domain); err != nil {
				return err
			}
			if in.Project, err = findProjectID(ctx, c, project); err != nil {
				return err
			}
			if in.ClientSecret, err = a.clientSecret(ctx, stdin); err != nil {
				return err
			}
			p, err := c.CreateProvider(ctx, in)
			if err != nil {
				return err
			}
			return a.table(p, func() *output.Table { return providerTable(*p) })
		})
	cmd.Long = `Add an OpenID Connect issuer for login. The client secret comes from
standard input with --client-secret-stdin, else from $BERTH_CLIENT_SECRET, else
from a prompt. At the issuer, allow the redirect URL
https://YOUR-SERVER/auth/oidc/NAME/callback.`
	cmd.Example = "  berth admin provider create corp --issuer https://login.example.org --client-id berth --auto-provision --email-domains example.org"
	flags := cmd.Flags()
	flags.StringVar(&in.DisplayName, "display-name", "", "the name on the login page (default: the name)")
	flags.StringVar(&in.Issuer, "issuer", "", "address of the issuer (needed)")
	flags.StringVar(&in.ClientID, "client-id", "", "Berth's client ID at the issuer (required)")
	flags.BoolVar(&stdin, "client-secret-stdin", false, "read the client secret from standard input")
	flags.StringSliceVar(&in.Scopes, "scopes", nil, "scopes to request from the issuer (default: openid, email, profile)")
	flags.BoolVar(&in.AutoProvision, "auto-provision", false, "create accounts on first login")
	flags.StringSliceVar(&in.EmailDomains, "email-domains", nil, "with --auto-provision: only of people with such e-mail addresses")
	flags.StringVar(&domain, "domain", "", "domain of the users (default: yours)")
	flags.StringVar(&project, "project", "", "project that new users become members of")
	sets(cmd, "client-id", "clientID")
	sets(cmd, "client-secret-stdin", "clientSecret")
	return cmd
}

func (a *app) providerUpdate() *cobra.Command {
	var in client.UpdateIdentityProviderInput
	var project *string
	var stdin bool
	cmd := a.verb("update PROVIDER", "Change an identity provider", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if project == nil && !stdin {
			if err := changes(in); err != nil {
				return err
			}
		}
		p, err := findProvider(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = p.ID
		if project != nil {
			if *project == "none" {
				in.ClearProject = ptr(true)
			} else {
				if in.Project, err = findProjectID(ctx, c, *project); err != nil {
					return err
				}
			}
		}
		if stdin {
			secret, err := readLine(a.in)
			if err != nil {
				return err
			}
			in.ClientSecret = &secret
		}
		if p, err = c.UpdateProvider(ctx, in); err != nil {
			return err
		}
		return a.table(p, func() *output.Table { return providerTable(*p) })
	})
	givenText(cmd, &in.DisplayName, "display-name", "the name on the login page, a `text`")
	givenText(cmd, &in.ClientID, "client-id", "Berth's client `ID` at the issuer")
	cmd.Flags().BoolVar(&stdin, "client-secret-stdin", false, "read another client secret from standard input")
	givenWords(cmd, &in.Scopes, "scopes", "`scopes` to ask the issuer for, with commas between")
	givenBool(cmd, &in.AutoProvision, "auto-provision", "create accounts on first login (=false: do not)")
	givenWords(cmd, &in.EmailDomains, "email-domains", "`domains` of their e-mail addresses, with commas between; none for none")
	givenText(cmd, &project, "project", "`project` that new users become members of; none for none")
	sets(cmd, "client-id", "clientID")
	sets(cmd, "client-secret-stdin", "clientSecret")
	return cmd
}

func (a *app) providerActive(name, short string, active bool) *cobra.Command {
	return a.onEach(name+" PROVIDER", short, findProviderID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateProvider(ctx, client.UpdateIdentityProviderInput{ID: id, Active: &active})
		return err
	})
}

func (a *app) providerDelete() *cobra.Command {
	return alias(a.onEach("delete PROVIDER", "Delete providers; their users stay", findProviderID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteProvider(ctx, id) }), "rm")
}
