package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func registrySweep(a *cli.App) *cobra.Command {
	var dryRun, detach bool
	cmd := a.Verb("sweep [REGISTRY]", "Free what no image of the registry for images of sessions needs", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := sweepable(ctx, c, args)
			if err != nil {
				return err
			}
			t, err := c.SweepRegistry(ctx, r.ID, dryRun)
			if err == nil && !detach {
				if t, err = task.UntilEnded(ctx, a, c, t); err == nil {
					err = task.Failure(t)
				}
			}
			if err != nil {
				return fmt.Errorf("sweep %s: %w", r.Name, err)
			}
			if detach {
				return a.Table(t, func() *output.Table { return task.Table(a, *t) })
			}
			if r, err = findRegistry(ctx, c, r.Name); err != nil {
				return err
			}
			return a.Printer().Print(r.LastSweep, func() error { return showSweep(a, r.LastSweep) })
		})
	cmd.Long = `Start a task that removes versions without a tag whose time is over, and layers
that no image needs, and wait for its end. The registry serves meanwhile.
Content that was pushed or used within the last 3 hours stays, and so do
versions that images refer to.`
	cmd.Example = "  berth image registry sweep --dry-run\n  berth image registry sweep local --detach"
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "report what would be freed, and remove nothing")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for its end; berth admin task shows how far it is")
	return cmd
}

// sweepable returns the named registry; without a name, the one that can be swept.
func sweepable(ctx context.Context, c *client.Client, args []string) (*client.Registry, error) {
	if len(args) > 0 {
		return findRegistry(ctx, c, args[0])
	}
	all, err := c.Registries(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.Sweepable {
			return &r, nil
		}
	}
	return nil, fmt.Errorf("this cluster has no registry for images of sessions: %w", errdefs.ErrNotFound)
}

func showSweep(a *cli.App, d *client.RegistrySweep) error {
	if d == nil {
		return nil
	}
	s := a.Sheet()
	freed := "Freed"
	if d.DryRun {
		freed = "Would free"
	}
	s.Fact(freed, output.Bytes(d.FreedBytes))
	s.Fact("Objects", fmt.Sprint(d.Blobs))
	s.Fact("Manifests", fmt.Sprint(d.Manifests))
	s.Fact("Uploads", fmt.Sprint(d.Uploads))
	s.Fact("Stay", output.Bytes(d.StoredBytes))
	s.Fact("Free on the disk", output.Bytes(d.FreeBytes))
	if d.Unclear > 0 {
		s.Fact("Not readable", fmt.Sprintf("%d manifests, such as one of %s; their repositories were left out", d.Unclear, d.UnclearIn))
	}
	return nil
}

func registryWebhook(a *cli.App) *cobra.Command {
	var off bool
	cmd := a.Verb("webhook REGISTRY", "Give the webhook of a registry a new secret, or switch it off", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRegistry(ctx, c, args[0])
			if err != nil {
				return err
			}
			if off {
				return c.DisableRegistryWebhook(ctx, r.ID)
			}
			w, err := c.EnableRegistryWebhook(ctx, r.ID)
			if err != nil {
				return err
			}
			return a.Printer().Print(w, func() error {
				s := a.Sheet()
				s.Fact("Path", w.Path)
				s.Fact("Authorization", w.Secret)
				return nil
			})
		})
	cmd.Long = `Give the webhook of a registry a new secret, which is shown once. In Harbor, or in
the configuration of distribution, set the URL of a manager with the path, and
the secret as the value of Authorization. After a push, the platform reads the
repository at once.`
	cmd.Flags().BoolVar(&off, "off", false, "remove the webhook")
	return cmd
}

func attachmentsCommand(a *cli.App) *cobra.Command {
	var search string
	var first int
	cmd := a.Verb("attachments IMAGE", "Show signatures, SBOMs and reports of vulnerabilities of an image", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			list, err := c.ImageAttachments(ctx, i.ID, search, first)
			if err != nil {
				return err
			}
			if search != "" {
				return a.Table(list, func() *output.Table { return packageTable(list) })
			}
			return a.Table(list, func() *output.Table { return attachmentTable(list) })
		})
	cmd.Long = `Show what the registry of an image has attached to it. With --search, list the
packages of its SBOMs whose name or version contains the text.`
	cmd.Example = "  berth image attachments python:3.11\n  berth image attachments python:3.11 --search openssl"
	cmd.Flags().StringVar(&search, "search", "", "list packages with this `text`")
	cmd.Flags().IntVar(&first, "limit", 100, "list at most this `number` of packages, up to 500")
	return cmd
}

func attachmentTable(list []client.ImageAttachment) *output.Table {
	t := output.NewTable("KIND", "FORMAT", "CONTENT", "SIZE", "DIGEST").Spare("DIGEST")
	for _, x := range list {
		content := x.Problem
		switch {
		case content != "":
		case len(x.Severities) > 0:
			var parts []string
			for _, s := range x.Severities {
				parts = append(parts, fmt.Sprintf("%s: %d", s.Severity.String(), s.Count))
			}
			content = strings.Join(parts, ", ")
		case x.Kind == "VULNERABILITIES":
			content = "none found"
		case x.Kind == "SBOM":
			content = fmt.Sprintf("%d packages", x.PackageCount)
		}
		format := x.Format
		if format == "" {
			format = x.Type
		}
		t.Row(x.Kind.String(), format, content, output.Bytes(x.SizeBytes), x.Digest)
	}
	return t
}

func packageTable(list []client.ImageAttachment) *output.Table {
	t := output.NewTable("PACKAGE", "VERSION", "LICENSE")
	for _, x := range list {
		for _, p := range x.Packages {
			t.Row(p.Name, p.Version, p.License)
		}
	}
	return t
}
