package main

import (
	"fmt"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) imageCommand() *cobra.Command {
	return group("image", "Manage images and their registries",
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
	t := output.NewTable("NAME", "ARCHITECTURE", "SIZE", "MINIMUM", "STATUS", "REGISTRY", "REFERENCE").Spare("MINIMUM")
	for _, i := range list {
		registry := ""
		if i.Registry != nil {
			registry = i.Registry.Name
		}
		t.Row(i.Name, i.Architecture, output.Bytes(i.SizeBytes), output.Slots(i.MinimumSlots), i.Status, registry, i.Reference)
	}
	return t
}

func (a *app) imageRegister() *cobra.Command {
	return &cobra.Command{
		Use:     "register REFERENCE",
		Short:   "Register one image of a known registry",
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
		Short: "Unregister images; their registry keeps them",
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
		Short: "Register every tag of a registry; without a name, of all registries",
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
				return fmt.Errorf("registry %q does not exist: %w", wanted, errdefs.ErrNotFound)
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

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
