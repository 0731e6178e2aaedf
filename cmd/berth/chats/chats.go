// Package chats has the commands about stored chats. Package chat talks to a model, and stores nothing.
package chats

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth chats".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("chats", "List, show, export and import the chats of the page",
		listCommand(a), showCommand(a), exportCommand(a), importCommand(a), deleteCommand(a))
}

func table(list ...client.Chat) *output.Table {
	t := output.NewTable("ID", "TITLE", "UPDATED", "SHARED")
	for _, c := range list {
		shared := "no"
		if c.Shared {
			shared = "yes"
		}
		t.Row(c.ID, c.Title, cli.Clock(c.UpdatedAt), shared)
	}
	return t
}

func listCommand(a *cli.App) *cobra.Command {
	var text string
	var limit int
	cmd := a.List("List your chats, the newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Chats(ctx, text, limit)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return table(list...) })
	})
	cmd.Flags().StringVar(&text, "search", "", "only those with these words in the title, a prompt or an answer")
	cmd.Flags().IntVar(&limit, "limit", 0, "largest number of chats (default: all)")
	cli.SetsField(cmd, "search", "text")
	return cmd
}

func showCommand(a *cli.App) *cobra.Command {
	return a.Verb("show CHAT", "Print the prompts and answers of a chat", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		turns, err := c.ChatTurns(ctx, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(turns, func() error { return write(a.Out, turns) })
	})
}

// write prints a conversation. What a model wrote cannot control the terminal.
func write(w io.Writer, turns []client.ChatTurn) error {
	var b strings.Builder
	for _, t := range turns {
		fmt.Fprintf(&b, "> %s\n\n", strings.ReplaceAll(safe(t.Prompt), "\n", "\n> "))
		for _, x := range t.Answers {
			name := fmt.Sprint("column ", x.Column)
			if x.Model != nil {
				name = output.Clean(x.Model.Name)
			}
			fmt.Fprintf(&b, "[%s, %s]\n", name, strings.ToLower(string(x.Status)))
			if text := safe(x.Text); text != "" {
				fmt.Fprintln(&b, text)
			}
			if x.Message != "" {
				fmt.Fprintln(&b, output.Clean(x.Message))
			}
			fmt.Fprintln(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// safe makes a text of several lines safe for a terminal.
func safe(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = output.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

func exportCommand(a *cli.App) *cobra.Command {
	return a.Verb("export CHAT [FILE]", "Write a chat with all branches as JSON, to a file or standard output", cli.Args(1, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			text, err := c.ExportChat(ctx, args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				_, err := fmt.Fprintln(a.Out, text)
				return err
			}
			return os.WriteFile(args[1], []byte(text+"\n"), 0o600)
		})
}

func importCommand(a *cli.App) *cobra.Command {
	return a.Verb("import FILE", "Add a chat that export wrote; - is standard input", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		read := func() ([]byte, error) { return os.ReadFile(args[0]) }
		if args[0] == "-" {
			read = func() ([]byte, error) { return io.ReadAll(a.In) }
		}
		text, err := read()
		if err != nil {
			return err
		}
		made, err := c.ImportChat(ctx, string(text))
		if err != nil {
			return err
		}
		return a.Table(made, func() *output.Table { return table(*made) })
	})
}

func deleteCommand(a *cli.App) *cobra.Command {
	find := func(_ context.Context, _ *client.Client, ref string) (string, error) { return ref, nil }
	return cli.Alias(a.OnEach("rm CHAT", "Delete chats with their answers", find, func(ctx context.Context, c *client.Client, id string) error { return c.DeleteChat(ctx, id) }), "delete")
}
