// Package notices has the commands about the user's notices and their channels.
package notices

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth notices".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("notices", "List notices, and choose how they reach you",
		listCommand(a), readCommand(a), settingsCommand(a), setCommand(a), channelCommand(a), deliveriesCommand(a), resendCommand(a))
}

func listCommand(a *cli.App) *cobra.Command {
	var unread bool
	limit := 50
	cmd := a.List("List your notices, the newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Notices(ctx, unread, limit)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("TIME", "SEVERITY", "READ", "TEXT")
			for _, n := range list {
				t.Row(cli.Clock(n.CreatedAt), cli.EnumTexts([]client.Enum{n.Severity})[0], cli.YesNo(n.ReadAt != nil), n.Text)
			}
			return t
		})
	})
	cmd.Flags().BoolVar(&unread, "unread", false, "only those that you have not read")
	cmd.Flags().IntVar(&limit, "limit", limit, "largest number of notices; 0: all")
	cli.SetsField(cmd, "unread", "readAtIsNil")
	return cmd
}

func readCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("read [ID...]", "Mark notices as read", cli.Args(0, -1), func(ctx context.Context, c *client.Client, args []string) error {
		in := client.MarkNoticesReadInput{}
		if len(args) > 0 {
			in.Ids = args
		}
		n, err := c.MarkNoticesRead(ctx, in)
		if err != nil {
			return err
		}
		a.Note("%s marked as read.", cli.Plural(n, "notice"))
		return nil
	})
	cmd.Long = "Mark notices as read. Without an ID, all are marked."
	return cmd
}

func settingsCommand(a *cli.App) *cobra.Command {
	return a.Verb("settings", "Show how notices reach you", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		s, err := c.NoticeSettings(ctx)
		if err != nil {
			return err
		}
		return a.Table(s, func() *output.Table { return settingsTable(s) })
	})
}

func settingsTable(s *client.NoticeSettings) *output.Table {
	t := output.NewTable("KIND", "SEVERITY", "ROUTES")
	for _, k := range s.Kinds {
		routes := strings.Join(cli.EnumTexts(k.Routes), ", ")
		if routes == "" {
			routes = "none"
		}
		t.Row(cli.EnumTexts([]client.Enum{k.Kind})[0], cli.EnumTexts([]client.Enum{k.Severity})[0], routes)
	}
	return t
}

func setCommand(a *cli.App) *cobra.Command {
	var language string
	cmd := a.Verb("set [KIND ROUTES]", "Choose how notices of a kind reach you", cli.Args(0, 2), func(ctx context.Context, c *client.Client, args []string) error {
		in := client.SetNoticeSettingsInput{}
		if language != "" {
			in.Language = cli.Enum(language)
		}
		if len(args) == 1 {
			return cli.Usagef("say which routes: a list such as page,email, or none, or default")
		}
		if len(args) == 2 {
			k := client.NoticeRoutesInput{Kind: cli.Enum(args[0])}
			switch args[1] {
			case "default":
			case "none":
				k.Routes = []client.Enum{}
			default:
				routes, err := cli.Enums(args[1])
				if err != nil {
					return err
				}
				k.Routes = routes
			}
			in.Kinds = []client.NoticeRoutesInput{k}
		}
		s, err := c.SetNoticeSettings(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(s, func() *output.Table { return settingsTable(s) })
	})
	cmd.Long = `Choose how notices of a kind reach you. ROUTES is a list of page, browser, email,
webhook and slack, or none, or default.`
	cmd.Example = "  berth notices set session-ended page,email\n  berth notices set quota default\n  berth notices set --language ja"
	cmd.Flags().StringVar(&language, "language", "", "language of mails: en, ko or ja (default as before)")
	return cmd
}

func deliveriesCommand(a *cli.App) *cobra.Command {
	var cluster bool
	var status string
	limit := 50
	cmd := a.Verb("deliveries", "List what was sent through channels, the newest first", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.NoticeDeliveries(ctx, cluster, string(cli.Enum(status)), limit)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return deliveryTable(list...) })
	})
	cmd.Flags().BoolVar(&cluster, "cluster", false, "those of the channels of the cluster")
	cmd.Flags().StringVar(&status, "status", "", "only those with this status: waiting, sent, dead or dropped")
	cmd.Flags().IntVar(&limit, "limit", limit, "largest number of deliveries; 0: all")
	return cmd
}

func deliveryTable(list ...client.NoticeDelivery) *output.Table {
	t := output.NewTable("ID", "TIME", "CHANNEL", "KIND", "STATUS", "ATTEMPTS", "MESSAGE")
	for _, d := range list {
		words := cli.EnumTexts([]client.Enum{d.Type, d.Kind, d.Status})
		t.Row(d.ID, cli.Clock(d.CreatedAt), words[0], words[1], words[2], d.Attempts, d.Message)
	}
	return t
}

func resendCommand(a *cli.App) *cobra.Command {
	return a.Verb("resend DELIVERY", "Send a delivery again that could not be sent", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		d, err := c.ResendNoticeDelivery(ctx, args[0])
		if err != nil {
			return err
		}
		return a.Table(d, func() *output.Table { return deliveryTable(*d) })
	})
}
