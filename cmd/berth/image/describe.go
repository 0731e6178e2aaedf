package image

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func describeCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("describe IMAGE", "Show an image, the agents that have it, and how far pulls have come", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := c.ImageDetail(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Printer().Print(i, func() error { return describe(a, i) })
		})
	cmd.Aliases = []string{"show"}
	return cmd
}

func describe(a *cli.App, i *client.ImageDetail) error {
	s := a.Sheet()
	s.Fact("Image", i.Name)
	s.Fact("Reference", i.Reference)
	s.Fact("Digest", i.Digest)
	s.Fact("Architecture", i.Architecture)
	s.Fact("Size", output.Bytes(i.SizeBytes))
	s.Fact("Status", imageStatus(i.Image))
	s.Fact("Sessions", strconv.Itoa(i.Use.ActiveSessions))
	groups := make([]string, 0, len(i.AutoPull))
	for _, g := range i.AutoPull {
		groups = append(groups, g.Name)
	}
	s.Fact("Kept by", strings.Join(groups, ", "))
	if len(i.Copies) == 0 {
		s.Fact("Agents", "none")
		return nil
	}
	return a.Table(i.Copies, func() *output.Table {
		t := output.NewTable("AGENT", "STATE", "BYTES", "LAST USED", "MESSAGE")
		for _, copied := range i.Copies {
			used := ""
			if copied.UsedAt != nil {
				used = output.Age(a.Now(), *copied.UsedAt) + " ago"
			}
			t.Row(copied.Agent.Name, copied.State.String(), copiedBytes(copied), used, copied.Message)
		}
		return t
	})
}

func copiedBytes(c client.ImageCopy) string {
	if c.State == "PRESENT" {
		return output.Bytes(c.TotalBytes)
	}
	if c.TotalBytes == 0 {
		return output.Bytes(c.DoneBytes)
	}
	return fmt.Sprintf("%s of %s (%d %%)", output.Bytes(c.DoneBytes), output.Bytes(c.TotalBytes), 100*c.DoneBytes/c.TotalBytes)
}

func prepullCommand(a *cli.App) *cobra.Command {
	var group string
	var detach bool
	var at, zone string
	var window *[2]string
	cmd := a.Verb("prepull IMAGE", "Pull an image on all agents of a resource group", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			id, err := cli.FindGroupID(ctx, c, group)
			if err != nil {
				return err
			}
			in := client.PrepullImageInput{Image: i.ID, Group: id}
			if at != "" {
				starts, err := a.ParseTime("--at", at)
				if err != nil {
					return err
				}
				in.StartsAt = &starts
			}
			if window != nil {
				in.Window = &client.PrepullWindowInput{Start: window[0], End: window[1], TimeZone: zone}
			} else if zone != "" {
				return cli.Usagef("--time-zone belongs to --window")
			}
			t, err := c.PrepullImage(ctx, in)
			if err != nil {
				return err
			}
			if !detach && t.Status != "SCHEDULED" {
				if t, err = task.UntilEnded(ctx, a, c, t); err == nil {
					err = task.Failure(t)
				}
				if err != nil {
					return err
				}
			}
			return a.Table(t, func() *output.Table { return task.Table(a, *t) })
		})
	cmd.Long = `Start a task that pulls an image on all agents of a resource group, and wait
for its end. The agents fetch most of it from each other. An agent can remove
the image again when its disk is full; "berth image keep" prevents that.

With --at or --window, the task is scheduled, and the command ends at once. In a
window, agents pull only between its two times of the day: what is missing at
its end is pulled in the next one.`
	cmd.Example = "  berth image prepull torch-env:2 --group gpu\n  berth image describe torch-env:2\n" +
		"  berth image prepull torch-env:2 --group gpu --window 02:00-05:00 --time-zone Europe/Berlin"
	cmd.Flags().StringVar(&group, "group", "", "resource `group`, by name or id")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for its end; berth admin task shows how far it is")
	cmd.Flags().StringVar(&at, "at", "", "start at this `time`")
	cli.OptionalFlag(cmd, &window, "window", "pull only between two `times` of the day, such as 02:00-05:00", func(text string) (w [2]string, err error) {
		start, end, ok := strings.Cut(text, "-")
		if !ok {
			return w, fmt.Errorf("%q is not START-END, such as 02:00-05:00", text)
		}
		return [2]string{strings.TrimSpace(start), strings.TrimSpace(end)}, nil
	})
	cmd.Flags().StringVar(&zone, "time-zone", "", "time zone `name` of the window, such as Europe/Berlin (default: UTC)")
	cli.SetsField(cmd, "at", "startsAt")
	cli.SetsField(cmd, "window", "window.start", "window.end")
	cli.SetsField(cmd, "time-zone", "window.timeZone")
	_ = cmd.MarkFlagRequired("group")
	return cmd
}

func keepCommand(a *cli.App) *cobra.Command {
	var groups []string
	var none bool
	cmd := a.Verb("keep IMAGE", "Choose the resource groups whose agents always have an image", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if none == (len(groups) > 0) {
				return cli.Usagef("set --group or --none")
			}
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			in := client.UpdateImageInput{ID: i.ID, AutoPull: []string{}}
			for _, g := range groups {
				id, err := cli.FindGroupID(ctx, c, g)
				if err != nil {
					return err
				}
				in.AutoPull = append(in.AutoPull, id)
			}
			if _, err := c.UpdateImage(ctx, in); err != nil {
				return err
			}
			detail, err := c.ImageDetail(ctx, i.Reference)
			if err != nil {
				return err
			}
			return a.Printer().Print(detail, func() error { return describe(a, detail) })
		})
	cmd.Long = `Choose the resource groups whose agents always have an image. They pull it
before a session needs it, also agents that join later, and do not remove it to
free space. The groups that you name replace those that were set before.`
	cmd.Example = "  berth image keep torch-env:2 --group gpu,cpu\n  berth image keep torch-env:2 --none"
	cmd.Flags().StringSliceVar(&groups, "group", nil, "resource `groups`, by name or id")
	cmd.Flags().BoolVar(&none, "none", false, "no resource group keeps it")
	cli.SetsField(cmd, "group", "autoPull")
	return cmd
}
