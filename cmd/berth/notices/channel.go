package notices

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func channelCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("channel", "Manage addresses that notices are sent to",
		channelsCommand(a), createCommand(a), updateCommand(a), testCommand(a), deleteCommand(a)), "channels")
}

func channelTable(list ...client.NoticeChannel) *output.Table {
	t := output.NewTable("NAME", "TYPE", "HOST", "CLUSTER", "STATE", "FAILING SINCE", "ID")
	for _, c := range list {
		failing := ""
		if c.FailingSince != nil {
			failing = cli.Clock(*c.FailingSince)
		}
		t.Row(c.Name, cli.EnumTexts([]client.Enum{c.Type})[0], c.Host, cli.YesNo(c.Cluster), cli.ActiveCell(c.Enabled), failing, c.ID)
	}
	return t
}

// find returns the id of a channel of the user or of the cluster.
func find(cluster *bool) func(ctx context.Context, c *client.Client, ref string) (string, error) {
	return func(ctx context.Context, c *client.Client, ref string) (string, error) {
		return cli.IDOr(ref, func() (*client.NoticeChannel, error) {
			all, err := c.NoticeChannels(ctx, *cluster)
			var list []client.NoticeChannel
			for _, one := range all {
				if one.Name == ref {
					list = append(list, one)
				}
			}
			return cli.Pick(ctx, c, "channel", ref, list, err, func(n client.NoticeChannel) (id, name string) { return n.ID, n.Name })
		}, func(n *client.NoticeChannel) string { return n.ID })
	}
}

func clusterFlag(cmd *cobra.Command, cluster *bool) *cobra.Command {
	cmd.Flags().BoolVar(cluster, "cluster", false, "a channel of the cluster, for administrators")
	return cmd
}

func channelsCommand(a *cli.App) *cobra.Command {
	var cluster bool
	return clusterFlag(a.List("List channels", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.NoticeChannels(ctx, cluster)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return channelTable(list...) })
	}), &cluster)
}

func createCommand(a *cli.App) *cobra.Command {
	in := client.CreateNoticeChannelInput{}
	var cluster, slack, stdin bool
	cmd := a.Verb("create NAME [URL]", "Send notices to an address", cli.Args(1, 2), func(ctx context.Context, c *client.Client, args []string) error {
		in.Name, in.Type, in.Cluster = args[0], "WEBHOOK", cluster
		if slack {
			in.Type = "SLACK"
		}
		switch {
		case stdin && len(args) == 1:
			url, err := cli.ReadLine(a.In)
			if err != nil {
				return err
			}
			in.URL = url
		case !stdin && len(args) == 2:
			in.URL = args[1]
		default:
			return cli.Usagef("name the URL as the second argument, or give --url-stdin")
		}
		made, secret, err := c.CreateNoticeChannel(ctx, in)
		if err != nil {
			return err
		}
		if secret == nil {
			return a.Table(made, func() *output.Table { return channelTable(*made) })
		}
		return a.PrintSecret(map[string]any{"channel": made, "secret": secret}, secret, "This secret signs the requests. It is shown only once:")
	})
	cmd.Long = `Send notices to an address. Requests of a webhook are signed: docs/notices.md says
how to check the signature. The URL of a Slack webhook is a secret: read it from
standard input.`
	cmd.Example = "  berth notices channel create home https://example.org/berth\n  berth notices channel create chat --slack --url-stdin < url.txt"
	cmd.Flags().BoolVar(&slack, "slack", false, "the address is a webhook of Slack, or of a program with the same form")
	cmd.Flags().BoolVar(&stdin, "url-stdin", false, "read the URL from standard input")
	cli.SetsField(cmd, "slack", "type")
	cli.SetsField(cmd, "url-stdin", "url")
	return clusterFlag(cmd, &cluster)
}

func updateCommand(a *cli.App) *cobra.Command {
	var in client.UpdateNoticeChannelInput
	var cluster, enable, disable bool
	var name, url string
	cmd := a.Verb("update CHANNEL", "Change a channel", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if in.ID, err = find(&cluster)(ctx, c, args[0]); err != nil {
			return err
		}
		if enable || disable {
			in.Enabled = &enable
		}
		if name != "" {
			in.Name = &name
		}
		if url != "" {
			in.URL = &url
		}
		made, err := c.UpdateNoticeChannel(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(made, func() *output.Table { return channelTable(*made) })
	})
	cmd.Flags().StringVar(&name, "name", "", "new name")
	cmd.Flags().StringVar(&url, "url", "", "new address")
	cmd.Flags().BoolVar(&enable, "enable", false, "send notices again")
	cmd.Flags().BoolVar(&disable, "disable", false, "send nothing")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cli.SetsField(cmd, "enable", "enabled")
	cli.SetsField(cmd, "disable", "enabled")
	return clusterFlag(cmd, &cluster)
}

func testCommand(a *cli.App) *cobra.Command {
	var cluster bool
	cmd := a.Verb("test [CHANNEL]", "Send a test through a channel, or by mail", cli.Args(0, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in := client.TestNoticeChannelInput{}
		if len(args) == 1 {
			id, err := find(&cluster)(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = id
		}
		why, err := c.TestNoticeChannel(ctx, in)
		if err != nil {
			return err
		}
		if why != "" {
			return fmt.Errorf("the test was not delivered: %s", why)
		}
		a.Note("The test was delivered.")
		return nil
	})
	cmd.Long = "Send a test through a channel at once. Without a channel, it is a mail to you."
	return clusterFlag(cmd, &cluster)
}

func deleteCommand(a *cli.App) *cobra.Command {
	var cluster bool
	cmd := a.OnEach("rm CHANNEL", "Delete channels", find(&cluster), func(ctx context.Context, c *client.Client, id string) error {
		return a.Removed(id, c.DeleteNoticeChannel(ctx, id))
	})
	cmd.Aliases = []string{"delete"}
	return clusterFlag(cmd, &cluster)
}
