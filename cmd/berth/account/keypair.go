package account

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// KeypairCommand returns the command "berth keypair".
func KeypairCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("keypair", "Manage keypairs, which sign requests",
		keypairList(a), keypairIssue(a), keypairRotate(a),
		keypairChange(a, "activate", "Activate keypairs: they can sign requests", func(in *client.UpdateKeypairInput) { in.Active = cli.Ptr(true) }),
		keypairChange(a, "deactivate", "Deactivate keypairs: their requests are refused", func(in *client.UpdateKeypairInput) { in.Active = cli.Ptr(false) }),
		keypairChange(a, "default", "Set the default keypair", func(in *client.UpdateKeypairInput) { in.MakeDefault = cli.Ptr(true) }),
		keypairUpdate(a), keypairDelete(a))
	cmd.Long = `Manage keypairs. With BERTH_ACCESS_KEY and BERTH_SECRET_KEY set, every berth
command signs its requests with that keypair.

KEYPAIR is a name, an access key or an ID; for another user's, USER/NAME.`
	return cli.Alias(cmd, "keypairs")
}

func keypairList(a *cli.App) *cobra.Command {
	var user string
	cmd := a.List("List your keypairs, or a user's", func(ctx context.Context, c *client.Client, _ []string) error {
		owner, err := cli.FindUserID(ctx, c, user)
		if err != nil {
			return err
		}
		list, err := c.Keypairs(ctx, owner)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return keypairTable(a, list...) })
	})
	cmd.Flags().StringVar(&user, "user", "", "whose (default: yours)")
	return cmd
}

func keypairTable(a *cli.App, list ...client.Keypair) *output.Table {
	t := output.NewTable("NAME", "ACCESS KEY", "STATE", "EXPIRES", "RATE", "LAST USED", "ID").Spare("ID", "RATE")
	for _, k := range list {
		state := credentialStatus(k.Status)
		if k.IsDefault {
			state.Text += ", default"
		}
		rate := "default"
		if k.RateLimit != nil {
			rate = strconv.Itoa(*k.RateLimit) + " in 15m"
		}
		t.Row(k.Name, k.AccessKey, state, expiry(a, k.ExpiresAt), rate, a.Ago(k.LastUsedAt), k.ID)
	}
	return t
}

// showKeypair prints a keypair and its secret. The text format sets variables of a shell.
func showKeypair(a *cli.App, k *client.NewKeypair) error {
	return a.Printer().Print(k, func() error {
		noteMaker(a, k.Keypair.MakerID, k.Keypair.ExpiresAt)
		a.Note("The secret is shown this once.")
		fmt.Fprintf(a.Out, "BERTH_ACCESS_KEY=%s\n", output.Clean(k.Keypair.AccessKey))
		if k.Secret != nil {
			fmt.Fprintf(a.Out, "BERTH_SECRET_KEY=%s\n", output.Clean(*k.Secret))
		}
		return nil
	})
}

func keypairIssue(a *cli.App) *cobra.Command {
	var in client.CreateKeypairInput
	var own ownLogin
	cmd := a.Verb("issue NAME", "Create a keypair and print its secret", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in.Name = args[0]
		return withOwnLogin(ctx, a, c, own, func(c *client.Client) error {
			made, err := c.CreateKeypair(ctx, in)
			if err != nil {
				return err
			}
			return showKeypair(a, made)
		})
	})
	own.flags(cmd)
	cmd.Long = `Create a keypair and print it with its secret, which is not shown again, as shell
variables. A keypair that is created with the token of this context ends with the
token; with --login it does not.`
	cmd.Example = "  berth keypair issue ci > ci.env"
	cli.OptionalCount(cmd, &in.RateLimit, "rate-limit", "maximum `number` of requests in 15 minutes (administrators only)")
	return cli.Alias(cmd, "create")
}

func keypairRotate(a *cli.App) *cobra.Command {
	var own ownLogin
	cmd := a.Verb("rotate KEYPAIR", "Give a keypair a new secret; the old one is revoked", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			k, err := cli.FindKeypair(ctx, c, args[0], "")
			if err != nil {
				return err
			}
			return withOwnLogin(ctx, a, c, own, func(c *client.Client) error {
				made, err := c.RotateKeypair(ctx, k.ID)
				if err != nil {
					return err
				}
				return showKeypair(a, made)
			})
		})
	cmd.Long = `Give a keypair a new secret. The old secret is revoked at once, as are credentials
that were created with it. A secret that is created with the token of this context
ends with the token; with --login it does not.`
	own.flags(cmd)
	return cmd
}

func keypairChange(a *cli.App, name, short string, set func(*client.UpdateKeypairInput)) *cobra.Command {
	return a.OnEach(name+" KEYPAIR", short, cli.FindKeypairID, func(ctx context.Context, c *client.Client, id string) error {
		in := client.UpdateKeypairInput{ID: id}
		set(&in)
		_, err := c.UpdateKeypair(ctx, in)
		return err
	})
}

func keypairUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateKeypairInput
	cmd := a.Verb("update KEYPAIR", "Rename a keypair, or set its rate limit", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		k, err := cli.FindKeypair(ctx, c, args[0], "")
		if err != nil {
			return err
		}
		if in.ID = k.ID; in.RateLimit != nil && *in.RateLimit == cli.NoLimit {
			in.RateLimit, in.ClearRateLimit = nil, cli.Ptr(true)
		}
		if k, err = c.UpdateKeypair(ctx, in); err != nil {
			return err
		}
		return a.Table(k, func() *output.Table { return keypairTable(a, *k) })
	})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalFlag(cmd, &in.RateLimit, "rate-limit", "requests in 15 minutes, a `number`, or none for the platform's default", cli.Limited(cli.ParseCount))
	return cmd
}

func keypairDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete KEYPAIR", "Remove keypairs", cli.FindKeypairID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteKeypair(ctx, id) }), "rm")
}
