package image

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func registryCommand(a *cli.App) *cobra.Command {
	return cli.Group("registry", "Manage registries", registryList(a), registryCreate(a), registryUpdate(a), registryTest(a), registryDelete(a))
}

func registryList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List registries",
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.Registries(cmd.Context())
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return registryTable(a, list...) })
		},
	}
}

func registryTable(a *cli.App, list ...client.Registry) *output.Table {
	t := output.NewTable("NAME", "HOST", "SCANNED", "ID").Spare("ID")
	for _, r := range list {
		scanned := "never"
		if r.LastScannedAt != nil {
			scanned = output.Age(a.Now(), *r.LastScannedAt) + " ago"
		}
		t.Row(r.Name, r.Host, scanned, r.ID)
	}
	return t
}

func registryCreate(a *cli.App) *cobra.Command {
	var in client.CreateRegistryInput
	var settings settings
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:     "create NAME HOST[:PORT]",
		Short:   "Add a registry",
		Example: "  berth image registry create hub registry-1.docker.io",
		Args:    cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			in.Name, in.Host = args[0], args[1]
			if passwordStdin {
				if in.Password, err = cli.ReadLine(a.In); err != nil {
					return err
				}
			}
			if err := settings.create(cmd.Context(), c, &in); err != nil {
				return err
			}
			r, err := c.CreateRegistry(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.Table(r, func() *output.Table { return registryTable(a, *r) })
		},
	}
	settings.flags(cmd)
	cmd.Flags().BoolVar(&in.PlainHTTP, "plain-http", false, "the registry speaks http without encryption")
	cmd.Flags().StringVar(&in.Username, "username", "", "user name at the registry")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func registryUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateRegistryInput
	var settings settings
	var passwordStdin bool
	cmd := a.Verb("update REGISTRY", "Change the settings of a registry", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRegistry(ctx, c, args[0])
			if err != nil {
				return err
			}
			if passwordStdin {
				text, err := cli.ReadLine(a.In)
				if err != nil {
					return err
				}
				in.Password = &text
			}
			in.ID = r.ID
			if err := settings.update(ctx, c, &in); err != nil {
				return err
			}
			if r, err = c.UpdateRegistry(ctx, in); err != nil {
				return err
			}
			return a.Table(r, func() *output.Table { return registryTable(a, *r) })
		})
	cmd.Long = `Change a registry. Its host cannot change: it is part of the name of every image.
New credentials are used from the next scan and the next pull; empty values remove
them.`
	cmd.Example = "  berth image registry update hub --username robot --password-stdin < token\n  berth image registry update hub --username \"\""
	settings.flags(cmd)
	cli.OptionalText(cmd, &in.Name, "name", "new `name`")
	cli.OptionalBool(cmd, &in.PlainHTTP, "plain-http", "the registry speaks http without encryption; --plain-http=false: it does not")
	cli.OptionalText(cmd, &in.Username, "username", "user `name` at the registry")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func registryDelete(a *cli.App) *cobra.Command {
	cmd := a.Verb("delete REGISTRY", "Remove a registry and its images", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRegistry(ctx, c, args[0])
			if err != nil {
				return err
			}
			return c.DeleteRegistry(ctx, r.ID)
		})
	cmd.Long = `Remove a registry and its images from Berth; the registry itself keeps them.
It is refused while sessions that have not ended use one of the images.`
	return cmd
}

// findRegistry finds a registry by name, host or id.
func findRegistry(ctx context.Context, c *client.Client, ref string) (*client.Registry, error) {
	if !cli.IsID(ref) {
		found, err := c.RegistryByName(ctx, ref)
		return cli.ByName("registry", ref, found, err)
	}
	all, err := c.Registries(ctx)
	return cli.Pick(ctx, c, "registry", ref, all, err, func(r client.Registry) (id, name string) { return r.ID, r.Name })
}
