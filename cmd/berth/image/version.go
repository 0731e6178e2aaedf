package image

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func historyCommand(a *cli.App) *cobra.Command {
	var from, to string
	cmd := a.Verb("history IMAGE", "Show the contents that an image had, what they were saved from, and what changed", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			h, err := c.ImageHistory(ctx, args[0], from, to)
			if err != nil {
				return err
			}
			return a.Printer().Print(h, func() error { return showHistory(a, h) })
		})
	cmd.Flags().StringVar(&from, "from", "", "compare from this `digest` (default: the one before the newest)")
	cmd.Flags().StringVar(&to, "to", "", "compare to this `digest` (default: the newest)")
	return cmd
}

func showHistory(a *cli.App, h *client.ImageHistory) error {
	if h.SessionID != nil {
		return commits(a, h)
	}
	t := output.NewTable("DIGEST", "SIZE", "SEEN", "USED")
	for _, v := range h.Versions {
		used := ""
		if v.Digest == h.Digest {
			used = "yes"
		}
		t.Row(v.Digest, output.Bytes(v.SizeBytes), output.Age(a.Now(), v.CreatedAt)+" ago", used)
	}
	return showChange(a, h, t)
}

// commits shows what the image was saved from.
func commits(a *cli.App, h *client.ImageHistory) error {
	t := output.NewTable("DIGEST", "SIZE", "ADDS", "SAVED", "BY", "SESSION", "BASE").Spare("SESSION", "BASE")
	for _, v := range h.Versions {
		by, session := "", ""
		if v.Creator != nil {
			by = v.Creator.Username
		}
		if v.SessionID != nil {
			session = *v.SessionID
		}
		t.Row(v.Digest, output.Bytes(v.SizeBytes), output.Bytes(v.AddedBytes), output.Age(a.Now(), v.CreatedAt)+" ago", by, session, v.Base)
	}
	return showChange(a, h, t)
}

// showChange shows the versions of an image, and what differs between two of them.
func showChange(a *cli.App, h *client.ImageHistory, t *output.Table) error {
	if err := a.Table(h.Versions, func() *output.Table { return t }); err != nil || h.Change == nil {
		return err
	}
	s := a.Sheet()
	s.Fact("From", h.Change.From)
	s.Fact("To", h.Change.To)
	s.Fact("Layers kept", fmt.Sprintf("%d, %s", h.Change.LayersKept, output.Bytes(h.Change.BytesKept)))
	s.Fact("Layers added", fmt.Sprintf("%d, %s", h.Change.LayersAdded, output.Bytes(h.Change.BytesAdded)))
	s.Fact("Layers removed", fmt.Sprint(h.Change.LayersRemoved))
	for _, l := range h.Change.Labels {
		s.Fact("Label "+l.Name, valueChange(l))
	}
	for _, e := range h.Change.Environment {
		s.Fact("Variable "+e.Name, valueChange(e))
	}
	return nil
}

func valueChange(v client.ValueChange) string {
	text := func(s *string) string {
		if s == nil {
			return "none"
		}
		return *s
	}
	return text(v.Before) + " → " + text(v.After)
}

func updateCommand(a *cli.App) *cobra.Command {
	var in client.UpdateImageInput
	var policy *client.Enum
	cmd := a.Verb("update IMAGE", "Describe or deprecate an image, or change what a scan does when its tag moves", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = i.ID
			if policy != nil {
				in.TagPolicy = *policy
			}
			if i, err = c.UpdateImage(ctx, in); err != nil {
				return err
			}
			return a.Table(i, func() *output.Table { return imageTable(*i) })
		})
	cmd.Example = "  berth image update torch-env:2 --description \"PyTorch 2.8 with our loaders\"\n" +
		"  berth image update tool:1 --deprecated \"Use tool:2, which has the fix.\"\n  berth image update tool:1 --tag-policy pinned"
	cli.OptionalText(cmd, &in.Description, "description", "`text` of at most 1000 characters")
	cli.OptionalText(cmd, &in.Deprecated, "deprecated", "`message` for people who launch it; an empty one ends the deprecation")
	cli.OptionalFlag(cmd, &policy, "tag-policy", "registry: as its registry says; pinned: keep the digest; follow: take the new one", cli.Choice("registry", "pinned", "follow"))
	return cmd
}

func rollbackCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("rollback IMAGE [DIGEST]", "Give an image a former digest of its tag, and pin it", cli.Args(1, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			in := client.RollbackImageInput{ID: i.ID}
			if len(args) > 1 {
				in.Digest = args[1]
			}
			if i, err = c.RollbackImage(ctx, in); err != nil {
				return err
			}
			return a.Table(i, func() *output.Table { return imageTable(*i) })
		})
	cmd.Long = `Give an image the digest that its tag had before, or the one that you name, and
pin it, so that no scan moves it again. Sessions that run keep theirs. To take
the digest of the tag again: berth image update IMAGE --tag-policy follow`
	return cmd
}
