package cli

import (
	"context"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
)

// Place is a path in a folder; the path "" is the folder itself.
type Place struct{ Folder, Path string }

// ParsePlace reads FOLDER[:PATH].
func ParsePlace(text string) Place {
	folder, p, _ := strings.Cut(text, ":")
	p = strings.TrimPrefix(path.Clean("/"+p), "/")
	return Place{folder, p}
}

// FindPlace parses a place and finds its folder.
func (a *App) FindPlace(ctx context.Context, text string) (*client.Client, *client.Folder, string, error) {
	at := ParsePlace(text)
	c, err := a.Client()
	if err != nil {
		return nil, nil, "", err
	}
	f, err := FindFolder(ctx, c, at.Folder)
	return c, f, at.Path, err
}

// CompleteFolder completes the name of a folder as the first argument.
func (a *App) CompleteFolder(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	all, how := a.Propose(cmd.Context(), nouns["FOLDER"])
	return all, how | cobra.ShellCompDirectiveNoSpace
}

// CompleteSession completes the name of a live session as the first argument.
func (a *App) CompleteSession(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Propose(cmd.Context(), nouns["SESSION"])
}

// CompleteDeployment completes the name of a live deployment as the first argument.
func (a *App) CompleteDeployment(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Propose(cmd.Context(), nouns["DEPLOYMENT"])
}
