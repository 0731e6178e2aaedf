// Package chatendpoint has the commands about addresses outside the cluster whose models chats can use.
package chatendpoint

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth admin chat-endpoint".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("chat-endpoint", "Manage addresses outside the cluster whose models chats can use",
		listCommand(a), createCommand(a), updateCommand(a), deleteCommand(a)), "chat-endpoints")
}

func listCommand(a *cli.App) *cobra.Command {
	return a.List("List endpoints of chats", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.ChatEndpoints(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return table(list...) })
	})
}

func table(list ...client.ChatEndpoint) *output.Table {
	t := output.NewTable("NAME", "STATE", "URL", "KEY", "MODELS", "DOMAINS")
	for _, e := range list {
		key, domains := "no", []string{}
		if e.HasKey {
			key = "yes"
		}
		for _, d := range e.Domains {
			domains = append(domains, d.Name)
		}
		if len(domains) == 0 {
			domains = []string{"all"}
		}
		t.Row(e.Name, cli.ActiveCell(e.Enabled), e.URL, key, strings.Join(e.Models, ", "), strings.Join(domains, ", "))
	}
	return t
}

func find(ctx context.Context, c *client.Client, ref string) (string, error) {
	return cli.IDOr(ref, func() (*client.ChatEndpoint, error) {
		list, err := c.ChatEndpoints(ctx, ref)
		return cli.Pick(ctx, c, "endpoint", ref, list, err, func(e client.ChatEndpoint) (id, name string) { return e.ID, e.Name })
	}, func(e *client.ChatEndpoint) string { return e.ID })
}

// domains returns the ids of named domains.
func domains(ctx context.Context, c *client.Client, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		id, err := cli.FindDomainID(ctx, c, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func createCommand(a *cli.App) *cobra.Command {
	var in client.CreateChatEndpointInput
	var named []string
	var stdin bool
	cmd := a.Verb("create NAME", "Offer models of an address outside the cluster in chats", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in.Name = args[0]
			if in.URL == "" || len(in.Models) == 0 {
				return cli.Usagef("say with --url where it is, and with --model which models it has")
			}
			if in.Domains, err = domains(ctx, c, named); err != nil {
				return err
			}
			if stdin {
				if in.Key, err = cli.ReadLine(a.In); err != nil {
					return err
				}
			}
			e, err := c.CreateChatEndpoint(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(e, func() *output.Table { return table(*e) })
		})
	cmd.Long = `Offer models of an OpenAI-compatible address outside the cluster in chats. The
prompts of users are sent to it. The key comes from standard input.`
	cmd.Example = "  berth admin chat-endpoint create example --url https://api.example.com/v1 --model big --model small --key-stdin < key.txt"
	cmd.Flags().StringVar(&in.URL, "url", "", "address, such as https://api.example.com/v1 (required)")
	cmd.Flags().StringArrayVar(&in.Models, "model", nil, "name of a model that chats can use (repeatable, required)")
	cmd.Flags().StringArrayVar(&named, "domain", nil, "domain whose users can use it (repeatable; default: all)")
	cmd.Flags().BoolVar(&stdin, "key-stdin", false, "read the key from standard input (default: requests have no key)")
	cli.SetsField(cmd, "model", "models")
	cli.SetsField(cmd, "domain", "domains")
	cli.SetsField(cmd, "key-stdin", "key")
	return cmd
}

func updateCommand(a *cli.App) *cobra.Command {
	var in client.UpdateChatEndpointInput
	var models, named []string
	var stdin, enable, disable bool
	cmd := a.Verb("update ENDPOINT", "Change an endpoint of chats", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if enable || disable {
			in.Enabled = &enable
		}
		if models != nil {
			in.Models = models
		}
		if len(named) == 1 && named[0] == "all" {
			in.Domains = []string{}
		} else if in.Domains, err = domains(ctx, c, named); err != nil {
			return err
		}
		if stdin {
			key, err := cli.ReadLine(a.In)
			if err != nil {
				return err
			}
			in.Key = &key
		}
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		if in.ID, err = find(ctx, c, args[0]); err != nil {
			return err
		}
		e, err := c.UpdateChatEndpoint(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(e, func() *output.Table { return table(*e) })
	})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalText(cmd, &in.URL, "url", "another `address`, which needs the key again")
	cmd.Flags().StringArrayVar(&models, "model", nil, "name of a model that chats can use (repeatable; replaces all)")
	cmd.Flags().StringArrayVar(&named, "domain", nil, "domain whose users can use it (repeatable; replaces all domains; all for all)")
	cmd.Flags().BoolVar(&stdin, "key-stdin", false, "read another key from standard input; an empty line removes the key")
	cmd.Flags().BoolVar(&enable, "enable", false, "let chats use it")
	cmd.Flags().BoolVar(&disable, "disable", false, "do not let chats use it")
	cli.Exclusive(cmd, "enable", "disable")
	cli.SetsField(cmd, "model", "models")
	cli.SetsField(cmd, "domain", "domains")
	cli.SetsField(cmd, "key-stdin", "key")
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("rm ENDPOINT", "Delete endpoints of chats; answers keep the names of their models", find,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteChatEndpoint(ctx, id) }), "delete")
}
