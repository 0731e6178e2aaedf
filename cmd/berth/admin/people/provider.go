package people

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ProviderCommand returns the command "berth admin provider".
func ProviderCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("provider", "Manage identity providers for login (OpenID Connect)",
		providerList(a), providerCreate(a), providerUpdate(a),
		providerActive(a, "activate", "Activate providers: users can log in with them", true),
		providerActive(a, "deactivate", "Deactivate providers: users cannot log in with them", false),
		providerDelete(a)), "providers")
}

func providerList(a *cli.App) *cobra.Command {
	return a.List("List identity providers", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.IdentityProviders(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return providerTable(list...) })
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
		t.Row(p.Name, cli.ActiveCell(p.Active), p.Issuer, p.ClientID, p.Domain.Name, makes)
	}
	return t
}

func findProvider(ctx context.Context, c *client.Client, ref string) (*client.IdentityProvider, error) {
	if !cli.IsID(ref) {
		found, err := c.IdentityProviderByName(ctx, ref)
		return cli.ByName("identity provider", ref, found, err)
	}
	all, err := c.IdentityProviders(ctx)
	return cli.Pick(ctx, c, "identity provider", ref, all, err, func(p client.IdentityProvider) (id, name string) { return p.ID, p.Name })
}

func findProviderID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return cli.IDOr(ref, func() (*client.IdentityProvider, error) { return findProvider(ctx, c, ref) }, func(p *client.IdentityProvider) string { return p.ID })
}

// clientSecret returns the secret that the issuer has assigned to Berth.
func clientSecret(ctx context.Context, a *cli.App, stdin bool) (string, error) {
	if stdin {
		return cli.ReadLine(a.In)
	}
	if secret := a.Env("BERTH_CLIENT_SECRET"); secret != "" {
		return secret, nil
	}
	return a.AskSecret(ctx, "Client secret: ", "--client-secret-stdin or BERTH_CLIENT_SECRET")
}

func providerCreate(a *cli.App) *cobra.Command {
	var in client.CreateIdentityProviderInput
	var domain, project string
	var stdin bool
	cmd := a.Verb("create NAME", "Add an OpenID Connect issuer for login", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in.Name = args[0]
			for flag, value := range map[string]string{"--issuer": in.Issuer, "--client-id": in.ClientID} {
				if value == "" {
					return cli.Usagef("%s is missing", flag)
				}
			}
			if in.Domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
				return err
			}
			if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
				return err
			}
			if in.ClientSecret, err = clientSecret(ctx, a, stdin); err != nil {
				return err
			}
			p, err := c.CreateProvider(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(p, func() *output.Table { return providerTable(*p) })
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
	cli.SetsField(cmd, "client-id", "clientID")
	cli.SetsField(cmd, "client-secret-stdin", "clientSecret")
	return cmd
}

func providerUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateIdentityProviderInput
	var project *string
	var stdin bool
	cmd := a.Verb("update PROVIDER", "Change an identity provider", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if project == nil && !stdin {
			if err := cli.RequireChanges(in); err != nil {
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
				in.ClearProject = cli.Ptr(true)
			} else {
				if in.Project, err = cli.FindProjectID(ctx, c, *project); err != nil {
					return err
				}
			}
		}
		if stdin {
			secret, err := cli.ReadLine(a.In)
			if err != nil {
				return err
			}
			in.ClientSecret = &secret
		}
		if p, err = c.UpdateProvider(ctx, in); err != nil {
			return err
		}
		return a.Table(p, func() *output.Table { return providerTable(*p) })
	})
	cli.OptionalText(cmd, &in.DisplayName, "display-name", "the name on the login page, a `text`")
	cli.OptionalText(cmd, &in.ClientID, "client-id", "Berth's client `ID` at the issuer")
	cmd.Flags().BoolVar(&stdin, "client-secret-stdin", false, "read another client secret from standard input")
	cli.WordsFlag(cmd, &in.Scopes, "scopes", "`scopes` to ask the issuer for, with commas between")
	cli.OptionalBool(cmd, &in.AutoProvision, "auto-provision", "create accounts on first login (=false: do not)")
	cli.WordsFlag(cmd, &in.EmailDomains, "email-domains", "`domains` of their e-mail addresses, with commas between; none for none")
	cli.OptionalText(cmd, &project, "project", "`project` that new users become members of; none for none")
	cli.SetsField(cmd, "client-id", "clientID")
	cli.SetsField(cmd, "client-secret-stdin", "clientSecret")
	return cmd
}

func providerActive(a *cli.App, name, short string, active bool) *cobra.Command {
	return a.OnEach(name+" PROVIDER", short, findProviderID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateProvider(ctx, client.UpdateIdentityProviderInput{ID: id, Active: &active})
		return err
	})
}

func providerDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete PROVIDER", "Delete providers; their users stay", findProviderID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteProvider(ctx, id) }), "rm")
}
