package policy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// tokenKinds are the values of --tokens.
var tokenKinds = map[string]client.Enum{"input": "INPUT_TOKENS", "cached": "CACHED_INPUT_TOKENS", "output": "OUTPUT_TOKENS"}

// PriceCommand returns the command "berth admin price".
func PriceCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("price", "Manage the prices of slots and of tokens", priceList(a), priceSet(a), priceRemove(a)), "prices")
}

func priceList(a *cli.App) *cobra.Command {
	var history bool
	cmd := cli.Alias(a.Verb("ls", "List the prices that apply now or later", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			list, currency, err := c.Prices(ctx, history)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Note("Nothing has a price.")
			}
			return a.Table(list, func() *output.Table { return pricesTable(a, list, currency) })
		}), "list")
	cmd.Flags().BoolVar(&history, "history", false, "also the prices that later ones have replaced")
	return cmd
}

func pricesTable(a *cli.App, list []client.Price, currency string) *output.Table {
	t := output.NewTable("ID", "PRICE OF", "FOR", "AMOUNT", "PER", "SINCE").Spare("ID")
	for _, p := range list {
		what, per := p.Slot, currency+" per hour"
		if p.Slot == "mem" || strings.HasSuffix(p.Slot, ".mem") {
			per = currency + " per GiB and hour"
		}
		if p.Kind != "SLOT_HOUR" {
			what, per = strings.ReplaceAll(strings.ToLower(p.Kind.String()), "_", " "), currency+" per 1,000"
		}
		of := "all"
		switch {
		case p.ResourceGroup != nil:
			of = "group " + p.ResourceGroup.Name
		case p.Deployment != nil:
			of = "deployment " + p.Deployment.Name
		}
		since := output.Cell{Text: p.ValidFrom.Local().Format("2006-01-02 15:04")}
		if p.ValidFrom.After(a.Now()) {
			since = output.Cell{Text: "from " + since.Text, Color: output.Yellow}
		}
		t.Row(p.ID, what, of, p.Amount, per, since)
	}
	return t
}

func priceSet(a *cli.App) *cobra.Command {
	var group, tokens, deployment, from string
	cmd := a.Verb("set [SLOT] AMOUNT", "Set a price from now or from a later time on", cli.Args(1, 2),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in := client.SetPriceInput{Kind: "SLOT_HOUR", Amount: args[len(args)-1]}
			if len(args) == 2 {
				in.Slot = args[0]
			}
			if (tokens == "") != (len(args) == 2) {
				return cli.Usagef("name either a slot or --tokens")
			}
			if tokens != "" {
				kind, ok := tokenKinds[tokens]
				if !ok {
					return cli.Usagef("--tokens %s: not input, cached or output", tokens)
				}
				in.Kind = kind
			}
			if from != "" {
				if in.ValidFrom, err = a.ParseEnd("--from", from); err != nil {
					return err
				}
			}
			if in.ResourceGroup, err = cli.FindGroupID(ctx, c, group); err != nil {
				return err
			}
			if deployment != "" {
				d, err := cli.FindDeployment(ctx, c, deployment)
				if err != nil {
					return err
				}
				in.Deployment = d.ID
			}
			p, err := c.SetPrice(ctx, in)
			if err != nil {
				return err
			}
			currency, err := c.Currency(ctx)
			if err != nil {
				return err
			}
			return a.Table(p, func() *output.Table { return pricesTable(a, []client.Price{*p}, currency) })
		})
	cmd.Long = `Set the price of a slot for an hour (of memory: of 1 GiB), or of 1,000 tokens.
The price until then stays in the history, so that past costs never change; a
price in the past is refused. A price of a group or deployment is used before
the price for all.`
	cmd.Example = `  berth admin price set cpu 0.02
  berth admin price set cuda.shares 1.80 --group h100 --from 2027-01-01
  berth admin price set --tokens input 0.0005 --deployment llama`
	flags := cmd.Flags()
	flags.StringVar(&group, "group", "", "only on this resource group, by name or id")
	flags.StringVar(&tokens, "tokens", "", "instead of a slot: input, cached or output, for 1,000 tokens")
	flags.StringVar(&deployment, "deployment", "", "with --tokens: only of this deployment, by name or id")
	flags.StringVar(&from, "from", "", "a date, a time or a duration from now (default now)")
	return cmd
}

func priceRemove(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("rm ID", "Delete a price that has not begun", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.Removed(args[0], c.DeletePrice(ctx, args[0]))
		}), "remove")
}
