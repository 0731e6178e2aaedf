package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Group returns a command that only has sub-commands.
func Group(use, short string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: needsVerb, RunE: showHelp}
	cmd.AddCommand(sub...)
	return cmd
}

func needsVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("%s", text)}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// Args checks the number of arguments. Its error names the missing ones.
func Args(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && (high < 0 || len(args) <= high) {
			return nil
		}
		return Usagef("usage: %s", cmd.UseLine())
	}
}

// Split returns the arguments before and after --.
func Split(cmd *cobra.Command, args []string) (before, after []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// Verb returns a command that sends requests to the server.
func (a *App) Verb(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if err := do(cmd.Context(), c, args); err != nil {
				return err
			}
			a.announce(cmd.Context(), c)
			return nil
		},
	}
}

// OnEach returns a command that acts on several objects, one after the other. find returns the ID
// for a reference.
func (a *App) OnEach(use, short string, find func(ctx context.Context, c *client.Client, ref string) (string, error),
	do func(ctx context.Context, c *client.Client, id string) error) *cobra.Command {
	return a.Verb(use+"...", short, Args(1, -1), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Each(args, func(ref string) error {
			id, err := find(ctx, c, ref)
			if err != nil {
				return err
			}
			return do(ctx, c, id)
		})
	})
}

// List returns a command that lists objects.
func (a *App) List(short string, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	cmd := a.Verb("ls", short, Args(0, 0), do)
	cmd.Aliases = []string{"list"}
	return cmd
}

// Alias gives a command another name.
func Alias(cmd *cobra.Command, names ...string) *cobra.Command {
	cmd.Aliases = append(cmd.Aliases, names...)
	return cmd
}

// Each calls do for every reference and continues after an error; the last error decides the exit
// code.
func (a *App) Each(refs []string, do func(ref string) error) error {
	var last error
	for _, ref := range refs {
		err := do(ref)
		if err != nil {
			if last != nil {
				a.Note("berth: %s", OneLine(last))
			}
			last = fmt.Errorf("%s: %w", ref, err)
			continue
		}
		if !a.Printer().Machine() {
			fmt.Fprintln(a.Out, output.Clean(ref))
		}
	}
	return last
}
