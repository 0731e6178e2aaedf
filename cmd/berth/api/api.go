// Package api has the commands that speak to the API directly: any GraphQL document,
// and the versions of both sides.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth api".
func Command(a *cli.App) *cobra.Command {
	var plain, typed []string
	var operation string
	cmd := &cobra.Command{
		Use:   "api GRAPHQL",
		Short: "Run any GraphQL query, mutation or subscription",
		Long: `Run a GraphQL document: the text itself, @FILE, or - for standard input. Prints
the data as JSON; for a subscription, one JSON object per line and event.`,
		Example: `  berth api '{ viewer { user { email } } }'
  berth api 'query($n: Int) { sessions(first: $n) { totalCount } }' -F n=5
  berth api 'subscription { sessionChanged { name status } }'`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := document(a, args[0])
			if err != nil {
				return err
			}
			vars, err := variables(plain, typed)
			if err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			req := client.Request{Query: text, Operation: operation, Variables: vars}
			if isSubscription(text, operation) {
				return c.Subscribe(cmd.Context(), req, func(data json.RawMessage) error { return rawLine(a, data) })
			}
			return raw(cmd.Context(), a, c, req)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&plain, "field", "f", nil, "variable with a text: name=value (repeatable)")
	flags.StringArrayVarP(&typed, "json", "F", nil, "variable with a JSON value: name=json (repeatable)")
	flags.StringVar(&operation, "operation", "", "which operation of the document to run")
	return cmd
}

func document(a *cli.App, arg string) (string, error) {
	switch {
	case arg == "-":
		return a.ReadFile(arg)
	case strings.HasPrefix(arg, "@"):
		return a.ReadFile(arg[1:])
	}
	return arg, nil
}

func variables(plain, typed []string) (map[string]any, error) {
	vars := map[string]any{}
	for _, text := range plain {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, cli.Usagef("-f %s: write name=value", text)
		}
		vars[name] = value
	}
	for _, text := range typed {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !json.Valid([]byte(value)) {
			return nil, cli.Usagef("-F %s: write name=json", text)
		}
		vars[name] = json.RawMessage(value)
	}
	return vars, nil
}

func isSubscription(text, operation string) bool {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return false // the server reports the error
	}
	op := doc.Operations.ForName(operation)
	return op != nil && op.Operation == ast.Subscription
}

// raw prints the data even if there are errors too.
func raw(ctx context.Context, a *cli.App, c *client.Client, req client.Request) error {
	resp, err := c.Raw(ctx, req)
	if err != nil {
		return err
	}
	if len(resp.Data) > 0 && string(resp.Data) != "null" {
		p := a.Printer()
		if p.Format == "table" {
			p.Format = "json"
		}
		if err := p.Print(resp.Data, nil); err != nil {
			return err
		}
	}
	return resp.Err()
}

func rawLine(a *cli.App, data json.RawMessage) error {
	p := a.Printer()
	if p.Format == "yaml" {
		return p.Line(data, nil)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.Out, b.String())
	return err
}

// VersionCommand returns the command "berth version".
func VersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and, when it can be reached, of the server",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Client string  `json:"client"`
				Server *string `json:"server"`
			}{Client: a.Version}
			if c, err := a.Client(); err == nil {
				if server, err := c.ServerVersion(cmd.Context()); err == nil {
					v.Server = &server
				}
			}
			return a.Printer().Print(v, func() error {
				fmt.Fprintf(a.Out, "client %s\n", v.Client)
				if v.Server != nil {
					fmt.Fprintf(a.Out, "server %s\n", output.Clean(*v.Server))
				}
				return nil
			})
		},
	}
}
