package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ConfigCommand returns the command "berth ssh-config".
func ConfigCommand(a *cli.App) *cobra.Command {
	var l login
	var path string
	cmd := a.Verb("ssh-config [SESSION...]", "Write a configuration file with your running sessions for OpenSSH", cli.Args(0, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			all, err := configured(ctx, c, args)
			if err != nil {
				return err
			}
			g, err := newGateway(ctx, a, c, l)
			if err != nil {
				return err
			}
			if path == "-" {
				_, err = io.WriteString(a.Out, g.file(all))
				return err
			}
			return save(a, path, g.file(all), all)
		})
	cmd.Long = `Write a configuration file for OpenSSH with a host berth.NAME for each of your
running sessions, or for the given ones, and berth.NAME.sub1 for another
container. With the line "Include ~/.ssh/berth/config" at the beginning of
~/.ssh/config, every program that uses ssh reaches the sessions by these names:
ssh, scp, rsync, git, Visual Studio Code, JetBrains Gateway.

The file is replaced. Run the command again after a session has started.`
	cmd.Example = `  berth ssh-config && code --remote ssh-remote+berth.train /home/work
  berth ssh-config train --write -`
	cmd.ValidArgsFunction = a.CompleteSession
	l.register(cmd)
	cmd.Flags().StringVar(&path, "write", "", "`file` to write, or - for standard output (default ~/.ssh/berth/config)")
	return cmd
}

// configured returns the hosts of the named sessions, or of all running ones of the viewer.
func configured(ctx context.Context, c *client.Client, refs []string) ([]host, error) {
	sessions := []client.SessionContainers{}
	for _, ref := range refs {
		s, err := cli.RunningSession(ctx, c, ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		sessions = append(sessions, *s)
	}
	if len(refs) == 0 {
		who, err := c.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		sessions, err = c.SessionContainers(ctx, client.SessionFilter{Owner: who.User.ID, Statuses: []client.Enum{"RUNNING"}})
		if err != nil {
			return nil, err
		}
	}
	ids := map[string]string{}
	twice := map[string]bool{}
	for _, s := range sessions {
		if id, seen := ids[s.Name]; seen && id != s.ID {
			twice[s.Name] = true
		}
		ids[s.Name] = s.ID
	}
	all := []host{}
	done := map[string]bool{}
	for _, s := range sessions {
		if !done[s.ID] {
			all = append(all, hosts(s, twice[s.Name])...)
		}
		done[s.ID] = true
	}
	return all, nil
}

// file returns the configuration for ssh.
func (g *gateway) file(all []host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The running sessions behind %s. berth ssh-config replaces this file.\n", g.Host)
	for _, h := range all {
		fmt.Fprintf(&b, "\nHost %s\n", h.Name)
		for _, o := range g.options(h) {
			fmt.Fprintf(&b, "  %s %s\n", o[0], o[1])
		}
	}
	return b.String()
}

// save writes the file, prints the hosts, and explains how to make ssh read the file.
func save(a *cli.App, path, text string, all []host) error {
	home := a.Env("HOME")
	if path == "" {
		if home == "" {
			return fmt.Errorf("HOME is not set; name the file with --write: %w", errdefs.ErrFailedPrecondition)
		}
		path = filepath.Join(home, ".ssh", "berth", "config")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := write(path, text); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := a.Table(all, func() *output.Table {
		t := output.NewTable("HOST", "SESSION", "CONTAINER")
		for _, h := range all {
			t.Row(h.Name, h.Session, h.Container)
		}
		return t
	}); err != nil {
		return err
	}
	included, err := includes(filepath.Join(home, ".ssh", "config"), home, path)
	if err != nil || !included {
		shown := quote(path)
		if rest, below := strings.CutPrefix(path, home+"/"); below && !strings.ContainsAny(rest, `% "`) {
			shown = "~/" + rest
		}
		a.Note("To use these names with ssh, write this line at the beginning of ~/.ssh/config: Include %s", shown)
	}
	return nil
}

var includeLine = regexp.MustCompile(`(?mi)^\s*include\s+(.*)$`)

// includes reports whether one configuration file of ssh includes the other.
func includes(file, home, wanted string) (bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, m := range includeLine.FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(m[1]) {
			name = strings.Trim(name, `"`)
			if rest, ok := strings.CutPrefix(name, "~/"); ok {
				name = filepath.Join(home, rest)
			} else if !filepath.IsAbs(name) {
				name = filepath.Join(home, ".ssh", name)
			}
			if name == wanted {
				return true, nil
			}
		}
	}
	return false, err
}
