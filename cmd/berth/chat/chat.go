// Package chat has the command that talks to a deployment in the terminal.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

const (
	// keyLife is the lifetime of a key that the command creates; it is revoked at the end, too.
	keyLife = time.Hour
	// revokeTime limits the time for revoking it.
	revokeTime = 5 * time.Second
	// maxPrompt limits a prompt from standard input, in bytes.
	maxPrompt = 4 << 20
)

// settings are the flags of the command.
type settings struct {
	key, system string
	temperature *float64
	maxTokens   *int
	jsonMode    bool
	verbose     bool
}

// Command returns the command "berth chat".
func Command(a *cli.App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "chat MODEL [PROMPT]",
		Short: "Chat with a deployment",
		Long: `Chat with a deployment. With PROMPT, or with a prompt on standard input, the
answer is printed as it arrives. On a terminal without PROMPT, a conversation
begins: Ctrl-C stops an answer, and Ctrl-D ends the conversation.

Without --key and $BERTH_MODEL_KEY, the command creates a key for the deployment,
which ends after an hour at the latest, and revokes it at the end.

Control characters in answers are printed as escapes such as \x1b. With -o json,
the answer is printed unchanged at its end, with the measured times.`,
		Example: `  berth chat llama "Why is the sky blue?"
  berth chat llama --system "Answer in one line." < question.txt
  berth chat llama -v`,
		Args:              cli.Args(1, -1),
		ValidArgsFunction: a.CompleteDeployment,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, s, args[0], strings.Join(args[1:], " "))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.key, "key", "", "`key` for models (default: $BERTH_MODEL_KEY, or a new one)")
	flags.StringVar(&s.system, "system", "", "`instruction` before the conversation")
	cli.OptionalFlag(cmd, &s.temperature, "temperature", "`number` from 0 to 2; higher is more random", parseTemperature)
	cli.OptionalCount(cmd, &s.maxTokens, "max-tokens", "most `tokens` of an answer")
	flags.BoolVar(&s.jsonMode, "json", false, "ask the model for an answer in JSON")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "print the time to the first token, tokens, tokens/s and the cost after each answer")
	return cmd
}

func parseTemperature(text string) (float64, error) {
	var n float64
	if _, err := fmt.Sscanf(text, "%g", &n); err != nil || !(n >= 0 && n <= 2) {
		return 0, errors.New("not a number from 0 to 2")
	}
	return n, nil
}

func run(ctx context.Context, a *cli.App, s settings, model, prompt string) (err error) {
	_, terminal := cli.Terminal(a.In)
	if prompt == "" && !terminal {
		raw, err := io.ReadAll(io.LimitReader(a.In, maxPrompt+1))
		if err != nil {
			return fmt.Errorf("read the prompt: %w", err)
		}
		if len(raw) > maxPrompt {
			return cli.Usagef("the prompt has more than %d bytes", maxPrompt)
		}
		if prompt = strings.TrimSpace(string(raw)); prompt == "" {
			return cli.Usagef("the prompt on standard input is empty")
		}
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	url, err := c.ModelsURL(ctx)
	if err != nil {
		return err
	}
	if url == "" {
		return fmt.Errorf("no gateway serves models: %w", errdefs.ErrFailedPrecondition)
	}
	to, err := credential(ctx, a, c, s.key, model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.revoke()) }()
	t := &talk{app: a, settings: s, url: strings.TrimRight(url, "/"), key: to.key, model: to.name}
	if s.verbose && to.prices != nil {
		if t.currency, err = c.Currency(ctx); err != nil {
			return err
		}
		t.prices = to.prices
	}
	if s.system != "" {
		t.messages = append(t.messages, message{"system", s.system})
	}
	// From here on, an interrupt must not end the process before the key is revoked.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	a.OwnSignals()
	ctx = context.WithoutCancel(ctx)
	if prompt == "" {
		return t.converse(ctx, lines(a.In), signals)
	}
	return t.interruptible(ctx, signals, func(ctx context.Context) error { return t.say(ctx, prompt) })
}

// target is the model that is asked.
type target struct {
	name, key string
	prices    *client.TokenPrices // nil: none, or they are not known because only a key was given
	revoke    func() error        // gives up the key at the end
}

// credential returns the model and a key for it.
func credential(ctx context.Context, a *cli.App, c *client.Client, key, model string) (target, error) {
	keep := func() error { return nil }
	if key == "" {
		key = a.Env("BERTH_MODEL_KEY")
	}
	if key != "" && !cli.IsID(model) {
		return target{name: model, key: key, revoke: keep}, nil
	}
	d, err := cli.FindDeployment(ctx, c, model)
	if err != nil {
		return target{}, err
	}
	if key != "" || d.Open {
		return target{d.Name, key, d.TokenPrices, keep}, nil
	}
	ends := a.Now().Add(keyLife)
	made, err := c.CreateDeploymentKey(ctx, client.CreateDeploymentKeyInput{Name: "berth chat", Deployment: d.ID, ExpiresAt: &ends})
	if err != nil {
		return target{}, fmt.Errorf("create a key for %s: %w", d.Name, err)
	}
	return target{d.Name, made.Secret, d.TokenPrices, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTime)
		defer cancel()
		if err := c.RevokeDeploymentKey(ctx, made.Key.ID); err != nil {
			return fmt.Errorf("revoke the key %s…, which ends by itself at %s: %w", made.Key.Prefix, cli.Clock(ends), err)
		}
		return nil
	}}, nil
}
