package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) keypairCommand() *cobra.Command {
	cmd := group("keypair", "Manage keypairs, which sign requests",
		a.keypairList(), a.keypairIssue(), a.keypairRotate(),
		a.keypairChange("activate", "Activate keypairs: they can sign requests", func(in *client.UpdateKeypairInput) { in.Active = ptr(true) }),
		a.keypairChange("deactivate", "Deactivate keypairs: their requests are refused", func(in *client.UpdateKeypairInput) { in.Active = ptr(false) }),
		a.keypairChange("default", "Set the default keypair", func(in *client.UpdateKeypairInput) { in.MakeDefault = ptr(true) }),
		a.keypairUpdate(), a.keypairDelete())
	cmd.Long = `Manage keypairs. With BERTH_ACCESS_KEY and BERTH_SECRET_KEY set, every berth
command signs its requests with that keypair.

KEYPAIR is a name, an access key or an ID; for another user's, USER/NAME.`
	return alias(cmd, "keypairs")
}

func ptr[T any](v T) *T { return &v }

func (a *app) keypairList() *cobra.Command {
	var user string
	cmd := a.list("List your keypairs, or a user's", func(ctx context.Context, c *client.Client, _ []string) error {
		owner, err := findUserID(ctx, c, user)
		if err != nil {
			return err
		}
		list, err := c.Keypairs(ctx, owner)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return a.keypairTable(list...) })
	})
	cmd.Flags().StringVar(&user, "user", "", "whose (default: yours)")
	return cmd
}

func (a *app) keypairTable(list ...client.Keypair) *output.Table {
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
		t.Row(k.Name, k.AccessKey, state, a.expiry(k.ExpiresAt), rate, a.ago(k.LastUsedAt), k.ID)
	}
	return t
}

// showKeypair prints a keypair and its secret, for people as variables that a
// shell can read.
func (a *app) showKeypair(k *client.NewKeypair) error {
	return a.print().Print(k, func() error {
		a.noteMaker(k.Keypair.MakerID, k.Keypair.ExpiresAt)
		a.note("The secret is shown this once.")
		fmt.Fprintf(a.out, "BERTH_ACCESS_KEY=%s\n", output.Clean(k.Keypair.AccessKey))
		if k.Secret != nil {
			fmt.Fprintf(a.out, "BERTH_SECRET_KEY=%s\n", output.Clean(*k.Secret))
		}
		return nil
	})
}

func (a *app) keypairIssue() *cobra.Command {
	var in client.CreateKeypairInput
	var own lasting
	cmd := a.verb("issue NAME", "Create a keypair and print its secret", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in.Name = args[0]
		return a.lasting(ctx, c, own, func(c *client.Client) error {
			made, err := c.CreateKeypair(ctx, in)
			if err != nil {
				return err
			}
			return a.showKeypair(made)
		})
	})
	own.flags(cmd)
	cmd.Long = `Create a keypair and print it with its secret, which is not shown again, as shell
variables. A keypair that is created with the token of this context ends with the
token; with --login it does not.`
	cmd.Example = "  berth keypair issue ci > ci.env"
	givenCount(cmd, &in.RateLimit, "rate-limit", "maximum `number` of requests in 15 minutes (administrators only)")
	return alias(cmd, "create")
}

func (a *app) keypairRotate() *cobra.Command {
	var own lasting
	cmd := a.verb("rotate KEYPAIR", "Give a keypair a new secret; the old one is revoked", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			k, err := findKeypair(ctx, c, args[0], "")
			if err != nil {
				return err
			}
			return a.lasting(ctx, c, own, func(c *client.Client) error {
				made, err := c.RotateKeypair(ctx, k.ID)
				if err != nil {
					return err
				}
				return a.showKeypair(made)
			})
		})
	cmd.Long = `Give a keypair a new secret. The old secret is revoked at once, as are credentials
that were created with it. A secret that is created with the token of this context
ends with the token; with --login it does not.`
	own.flags(cmd)
	return cmd
}

func (a *app) keypairChange(name, short string, set func(*client.UpdateKeypairInput)) *cobra.Command {
	return a.onEach(name+" KEYPAIR", short, findKeypairID, func(ctx context.Context, c *client.Client, id string) error {
		in := client.UpdateKeypairInput{ID: id}
		set(&in)
		_, err := c.UpdateKeypair(ctx, in)
		return err
	})
}

func (a *app) keypairUpdate() *cobra.Command {
	var in client.UpdateKeypairInput
	cmd := a.verb("update KEYPAIR", "Rename a keypair, or set its rate limit", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := changes(in); err != nil {
			return err
		}
		k, err := findKeypair(ctx, c, args[0], "")
		if err != nil {
			return err
		}
		if in.ID = k.ID; in.RateLimit != nil && *in.RateLimit == noLimit {
			in.RateLimit, in.ClearRateLimit = nil, ptr(true)
		}
		if k, err = c.UpdateKeypair(ctx, in); err != nil {
			return err
		}
		return a.table(k, func() *output.Table { return a.keypairTable(*k) })
	})
	givenText(cmd, &in.Name, "name", "another `name`")
	given(cmd, &in.RateLimit, "rate-limit", "requests in 15 minutes, a `number`, or none for the platform's default", limited(parseCount))
	return cmd
}

func (a *app) keypairDelete() *cobra.Command {
	return alias(a.onEach("delete KEYPAIR", "Remove keypairs", findKeypairID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteKeypair(ctx, id) }), "rm")
}
