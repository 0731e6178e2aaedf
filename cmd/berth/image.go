package main

import (
	"fmt"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) imageCommand() *cobra.Command {
	return group("image", "Work with images and their registries",
		a.imageList(), a.imageRegister(), a.imageScan(), a.imageForget(), a.imageRegistry())
}

func (a *app) imageList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls [PART-OF-NAME]",
		Aliases: []string{"list"},
		Short:   "List images",
		Args:    count(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Images(cmd.Context(), first(args))
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return imageTable(list...) })
		},
	}
}

func imageTable(list ...client.Image) *output.Table {
	t := output.NewTable("NAME", "ARCHITECTURE", "SIZE", "STATUS", "REGISTRY", "REFERENCE")
	for _, i := range list {
		t.Row(i.Name, i.Architecture, output.Bytes(i.SizeBytes), i.Status, i.Registry.Name, i.Reference)
	}
	return t
}

func (a *app) imageRegister() *cobra.Command {
	return &cobra.Command{
		Use:     "register REFERENCE",
		Short:   "Make one image known; its registry must be",
		Example: "  berth image register registry.example.org/team/tool:1.2",
		Args:    count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			i, err := c.RegisterImage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.table(i, func() *output.Table { return imageTable(*i) })
		},
	}
}

func (a *app) imageForget() *cobra.Command {
	return &cobra.Command{
		Use:   "forget IMAGE...",
		Short: "Make images unknown; their registry keeps them",
		Args:  count(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.each(args, func(ref string) error {
				i, err := findImage(cmd.Context(), c, ref)
				if err != nil {
					return err
				}
				return c.ForgetImage(cmd.Context(), i.ID)
			})
		},
	}
}

func (a *app) imageScan() *cobra.Command {
	return &cobra.Command{
		Use:   "scan [REGISTRY]",
		Short: "Make every tag of a registry known; without a name, of all registries",
		Args:  count(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			registries, err := c.Registries(cmd.Context())
			if err != nil {
				return err
			}
			wanted, results, failed := first(args), []client.ScanResult{}, 0
			for _, r := range registries {
				if wanted != "" && r.Name != wanted && r.Host != wanted && r.ID != wanted {
					continue
				}
				got, err := c.ScanRegistry(cmd.Context(), r.ID)
				if err != nil {
					return fmt.Errorf("scan %s: %w", r.Name, err)
				}
				results = append(results, got...)
				wanted = ""
				if len(args) > 0 {
					break
				}
			}
			if wanted != "" {
				return fmt.Errorf("there is no registry %q: %w", wanted, errdefs.ErrNotFound)
			}
			err = a.table(results, func() *output.Table {
				t := output.NewTable("REFERENCE", "RESULT")
				for _, r := range results {
					if r.Error != nil {
						t.Row(r.Reference, output.Cell{Text: *r.Error, Color: output.Red})
						continue
					}
					t.Row(r.Reference, output.Cell{Text: "ok", Color: output.Green})
				}
				return t
			})
			for _, r := range results {
				if r.Error != nil {
					failed++
				}
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%d of %d tags could not be registered", failed, len(results))
			}
			return err
		},
	}
}

func (a *app) imageRegistry() *cobra.Command {
	return group("registry", "Work with registries", a.registryList(), a.registryCreate())
}

func (a *app) registryList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List registries",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Registries(cmd.Context())
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return a.registryTable(list...) })
		},
	}
}

func (a *app) registryTable(list ...client.Registry) *output.Table {
	t := output.NewTable("NAME", "HOST", "SCANNED", "ID").Spare("ID")
	for _, r := range list {
		scanned := "never"
		if r.LastScannedAt != nil {
			scanned = output.Age(a.now(), *r.LastScannedAt) + " ago"
		}
		t.Row(r.Name, r.Host, scanned, r.ID)
	}
	return t
}

func (a *app) registryCreate() *cobra.Command {
	var in client.CreateRegistryInput
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:     "create NAME HOST[:PORT]",
		Short:   "Make a registry known",
		Example: "  berth image registry create hub registry-1.docker.io",
		Args:    count(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			in.Name, in.Host = args[0], args[1]
			if passwordStdin {
				if in.Password, err = readLine(a.in); err != nil {
					return err
				}
			}
			r, err := c.CreateRegistry(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.table(r, func() *output.Table { return a.registryTable(*r) })
		},
	}
	cmd.Flags().BoolVar(&in.PlainHTTP, "plain-http", false, "the registry speaks http without encryption")
	cmd.Flags().StringVar(&in.Username, "username", "", "user name at the registry")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
