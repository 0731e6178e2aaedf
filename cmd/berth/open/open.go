// Package open has the command that opens pages of the server.
package open

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// pages are the paths of pages without an object.
var pages = map[string]string{
	"home": "/", "sessions": "/sessions", "templates": "/templates", "serving": "/serving", "chat": "/chat", "queue": "/queue", "data": "/data",
	"cluster": "/cluster", "usage": "/account/usage", "limits": "/account/limits", "tokens": "/account/tokens", "account": "/account", "admin": "/admin",
}

// kind is a kind of objects that have a page.
type kind struct {
	name, path string
	find       func(ctx context.Context, c *client.Client, ref string) (id string, err error)
}

// kinds are in the order in which a name is looked up.
var kinds = []kind{
	{"session", "/sessions/", func(ctx context.Context, c *client.Client, ref string) (string, error) {
		s, err := cli.FindSession(ctx, c, ref)
		if err != nil {
			return "", err
		}
		return s.ID, nil
	}},
	{"folder", "/data/", func(ctx context.Context, c *client.Client, ref string) (string, error) {
		f, err := cli.FindFolder(ctx, c, ref)
		if err != nil {
			return "", err
		}
		return f.ID, nil
	}},
	{"deployment", "/serving/", func(ctx context.Context, c *client.Client, ref string) (string, error) {
		d, err := cli.FindDeployment(ctx, c, ref)
		if err != nil {
			return "", err
		}
		return d.ID, nil
	}},
}

// Command returns the command "berth open".
func Command(a *cli.App) *cobra.Command {
	var only string
	var print bool
	cmd := &cobra.Command{
		Use: "open [NAME]", Args: cli.Args(0, 1),
		Short: "Open the page of a session, a folder or a deployment, or another page",
		Long: `Open a page of the server in the browser, or print its address on a machine
without a display. NAME is the name or the ID of a session, a folder or a
deployment, or one of account, admin, chat, cluster, data, home, limits, queue,
serving, sessions, templates, tokens and usage.
If objects of several kinds have the name, choose with --kind.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := pages["home"]
			if len(args) > 0 {
				var err error
				if path, err = pathOf(cmd.Context(), a, args[0], only); err != nil {
					return err
				}
			}
			address, err := a.PageURL(path)
			if err != nil {
				return err
			}
			if !print && !a.Printer().Machine() && a.Browse(cmd.Context(), address) {
				return nil
			}
			return a.Printer().Print(map[string]string{"url": address}, func() error {
				_, err := fmt.Fprintln(a.Out, output.Clean(address))
				return err
			})
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			found, how := a.ProposeNouns(cmd.Context(), "SESSION", "FOLDER", "DEPLOYMENT")
			return append(found, slices.Sorted(maps.Keys(pages))...), how
		},
	}
	f := cmd.Flags()
	f.StringVar(&only, "kind", "", "kind of NAME: page, session, folder or deployment")
	f.BoolVar(&print, "url", false, "only print the address")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"page", "session", "folder", "deployment"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// pathOf returns the path of a page or of an object.
func pathOf(ctx context.Context, a *cli.App, name, only string) (string, error) {
	path, isPage := pages[name]
	if isPage && (only == "" || only == "page") {
		return path, nil
	}
	if only == "page" {
		return "", cli.Usagef("%q is not a page: choose one of %s", name, strings.Join(slices.Sorted(maps.Keys(pages)), ", "))
	}
	c, err := a.Client()
	if err != nil {
		return "", err
	}
	found := map[string]string{} // path by kind
	known := only == ""
	for _, k := range kinds {
		if only != "" && only != k.name {
			continue
		}
		known = true
		id, err := k.find(ctx, c, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		found[k.name] = k.path + id
	}
	switch {
	case !known:
		return "", cli.Usagef("--kind %q is not page, session, folder or deployment", only)
	case len(found) == 0:
		return "", fmt.Errorf("there is no session, folder or deployment %q: %w", name, errdefs.ErrNotFound)
	case len(found) > 1:
		return "", cli.Usagef("%q is the name of a %s: choose with --kind", name, strings.Join(slices.Sorted(maps.Keys(found)), " and of a "))
	}
	for _, path = range found {
	}
	return path, nil
}
