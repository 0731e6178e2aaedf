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
	c, err := a.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := c.Folders(cmd.Context(), client.FolderFilter{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, f := range list {
		all = append(all, f.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteSession completes the name of a live session as the first argument.
func (a *App) CompleteSession(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.Client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	live, err := c.Sessions(cmd.Context(), client.SessionFilter{Live: true, Limit: 50})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, s := range live {
		all = append(all, s.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// CompleteDeployment completes the name of a live deployment as the first argument.
func (a *App) CompleteDeployment(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.Client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	live, err := c.Deployments(cmd.Context(), client.DeploymentFilter{Live: true, Limit: 50})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, d := range live {
		all = append(all, d.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
