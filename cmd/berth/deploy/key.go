package deploy

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func keyCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("key", "Manage keys for requests to models", keyCreate(a), keyList(a), keyUpdate(a), keyRevoke(a)), "keys")
}

// keyLimits are the limits of a key; 0 means no limit.
type keyLimits struct {
	requests, tokens *int
	budget           *int64
}

func (l *keyLimits) register(cmd *cobra.Command) {
	cli.OptionalFlag(cmd, &l.requests, "requests-per-minute", "most `requests` in a minute; none = no limit", orNone(strconv.Atoi))
	cli.OptionalFlag(cmd, &l.tokens, "tokens-per-minute", "most `tokens` in a minute; none = no limit", orNone(strconv.Atoi))
	cli.OptionalFlag(cmd, &l.budget, "token-budget", "all `tokens` that the key can use; none = no limit", orNone(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }))
}

// orNone reads a number that is not negative; none is 0, which means no limit.
func orNone[T int | int64](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if text == "none" {
			return 0, nil
		}
		n, err := parse(text)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is not a whole number, or none for no limit", text)
		}
		return n, nil
	}
}

func apiNames() []string {
	return []string{"chat", "completions", "embeddings", "rerank", "audio", "images", "other"}
}

func keyCreate(a *cli.App) *cobra.Command {
	var limits keyLimits
	var deployment, expires string
	var apis []client.Enum
	cmd := a.Verb("create NAME", "Create a key and print it", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in := client.CreateDeploymentKeyInput{Name: args[0], Apis: apis, RequestsPerMinute: limits.requests, TokensPerMinute: limits.tokens, TokenBudget: limits.budget}
		if in.ExpiresAt, err = a.ParseEnd("--expires", expires); err != nil {
			return err
		}
		if deployment != "" {
			if in.Deployment, err = findID(ctx, c, deployment); err != nil {
				return err
			}
		}
		made, err := c.CreateDeploymentKey(ctx, in)
		if err != nil {
			return err
		}
		return a.PrintSecret(made, &made.Secret, "The key is shown this once.")
	})
	cmd.Long = `Create a key and print it; it is not shown again. Programs send it as
"Authorization: Bearer KEY"; berth chat reads it from $BERTH_MODEL_KEY.`
	cmd.Example = "  export BERTH_MODEL_KEY=$(berth deploy key create ci --deployment llama --token-budget 1000000)"
	limits.register(cmd)
	cmd.Flags().StringVar(&deployment, "deployment", "", "the only `deployment` that it is for (default: all that you can see)")
	cli.ListFlag(cmd, &apis, "api", "`APIs` that it can use, separated by commas: "+strings.Join(apiNames(), ", ")+" (default: all)", cli.Choices(apiNames()...))
	cli.SetsField(cmd, "api", "apis")
	cmd.Flags().StringVar(&expires, "expires", "never", "when it ends: a date, a time, a span such as 30d, or never")
	cli.SetsField(cmd, "expires", "expiresAt")
	return cmd
}

func keyList(a *cli.App) *cobra.Command {
	var deployment string
	cmd := a.List("List keys that are not revoked, with their use", func(ctx context.Context, c *client.Client, _ []string) error {
		id := ""
		if deployment != "" {
			var err error
			if id, err = findID(ctx, c, deployment); err != nil {
				return err
			}
		}
		list, err := c.DeploymentKeys(ctx, id)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return keyTable(a, list...) })
	})
	cmd.Flags().StringVar(&deployment, "deployment", "", "only keys for this `deployment` alone")
	return cmd
}

func keyTable(a *cli.App, list ...client.DeploymentKey) *output.Table {
	t := output.NewTable("NAME", "KEY", "DEPLOYMENT", "USER", "REQUESTS", "TOKENS", "LIMITS", "EXPIRES", "LAST USED", "ID").Spare("ID", "USER", "LAST USED", "KEY")
	for _, k := range list {
		expires := "never"
		if k.ExpiresAt != nil {
			expires = cli.Clock(*k.ExpiresAt)
		}
		of := "all"
		if k.Deployment != nil {
			of = k.Deployment.Name
		}
		t.Row(k.Name, k.Prefix+"…", of, k.User.Email, fmt.Sprint(k.UsedRequests), fmt.Sprint(k.UsedTokens), limitsText(k), expires, a.Ago(k.LastUsedAt), k.ID)
	}
	return t
}

func limitsText(k client.DeploymentKey) string {
	var parts []string
	for _, l := range []struct {
		n    int64
		unit string
	}{{int64(k.RequestsPerMinute), "requests/min"}, {int64(k.TokensPerMinute), "tokens/min"}, {k.TokenBudget, "tokens"}} {
		if l.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", l.n, l.unit))
		}
	}
	if len(k.Apis) < len(apiNames()) {
		var names []string
		for _, api := range k.Apis {
			names = append(names, api.String())
		}
		parts = append(parts, "only "+strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// findKey finds a key by ID, name or first characters.
func findKey(ctx context.Context, c *client.Client, ref string) (*client.DeploymentKey, error) {
	list, err := c.DeploymentKeys(ctx, "")
	return cli.Pick(ctx, c, "key", ref, list, err, func(k client.DeploymentKey) (id, name string) {
		if k.Prefix != "" && strings.HasPrefix(ref, k.Prefix) {
			return k.ID, ref
		}
		return k.ID, k.Name
	})
}

func keyUpdate(a *cli.App) *cobra.Command {
	var limits keyLimits
	cmd := a.Verb("update KEY", "Change the limits of a key", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(limits); err != nil {
			return err
		}
		k, err := findKey(ctx, c, args[0])
		if err != nil {
			return err
		}
		in := client.UpdateDeploymentKeyInput{ID: k.ID, RequestsPerMinute: limits.requests, TokensPerMinute: limits.tokens, TokenBudget: limits.budget}
		if k, err = c.UpdateDeploymentKey(ctx, in); err != nil {
			return err
		}
		return a.Table(k, func() *output.Table { return keyTable(a, *k) })
	})
	limits.register(cmd)
	return cmd
}

func keyRevoke(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("revoke KEY", "Revoke keys, by name, first characters or ID", func(ctx context.Context, c *client.Client, ref string) (string, error) {
		k, err := findKey(ctx, c, ref)
		if err != nil {
			return "", err
		}
		return k.ID, nil
	}, func(ctx context.Context, c *client.Client, id string) error { return c.RevokeDeploymentKey(ctx, id) }), "rm", "delete")
}
