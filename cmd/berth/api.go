package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func (a *app) apiCommand() *cobra.Command {
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
		Args: count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.document(args[0])
			if err != nil {
				return err
			}
			vars, err := variables(plain, typed)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			req := client.Request{Query: text, Operation: operation, Variables: vars}
			if isSubscription(text, operation) {
				return c.Subscribe(cmd.Context(), req, a.rawLine)
			}
			return a.raw(cmd.Context(), c, req)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&plain, "field", "f", nil, "variable with a text: name=value (repeatable)")
	flags.StringArrayVarP(&typed, "json", "F", nil, "variable with a JSON value: name=json (repeatable)")
	flags.StringVar(&operation, "operation", "", "which operation of the document to run")
	return cmd
}

func (a *app) document(arg string) (string, error) {
	switch {
	case arg == "-":
		return a.readFile(arg)
	case strings.HasPrefix(arg, "@"):
		return a.readFile(arg[1:])
	}
	return arg, nil
}

// readFile reads a whole file, or standard input for -.
func (a *app) readFile(path string) (string, error) {
	if path == "-" {
		b, err := io.ReadAll(a.in)
		return string(b), err
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

func variables(plain, typed []string) (map[string]any, error) {
	vars := map[string]any{}
	for _, text := range plain {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("-f %s: write name=value", text)
		}
		vars[name] = value
	}
	for _, text := range typed {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !json.Valid([]byte(value)) {
			return nil, usagef("-F %s: write name=json", text)
		}
		vars[name] = json.RawMessage(value)
	}
	return vars, nil
}

func isSubscription(text, operation string) bool {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return false // the server says what is wrong
	}
	op := doc.Operations.ForName(operation)
	return op != nil && op.Operation == ast.Subscription
}

// raw prints the data also when there are errors beside it.
func (a *app) raw(ctx context.Context, c *client.Client, req client.Request) error {
	resp, err := c.Raw(ctx, req)
	if err != nil {
		return err
	}
	if len(resp.Data) > 0 && string(resp.Data) != "null" {
		p := a.print()
		if p.Format == "table" {
			p.Format = "json"
		}
		if err := p.Print(resp.Data, nil); err != nil {
			return err
		}
	}
	return resp.Err()
}

func (a *app) rawLine(data json.RawMessage) error {
	p := a.print()
	if p.Format == "yaml" {
		return p.Line(data, nil)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out, b.String())
	return err
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and, when it can be reached, of the server",
		Args:  count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Client string  `json:"client"`
				Server *string `json:"server"`
			}{Client: a.version}
			if c, err := a.client(); err == nil {
				if server, err := c.ServerVersion(cmd.Context()); err == nil {
					v.Server = &server
				}
			}
			return a.print().Print(v, func() error {
				fmt.Fprintf(a.out, "client %s\n", v.Client)
				if v.Server != nil {
					fmt.Fprintf(a.out, "server %s\n", output.Clean(*v.Server))
				}
				return nil
			})
		},
	}
}
