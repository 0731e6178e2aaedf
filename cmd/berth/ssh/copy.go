package ssh

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// CopyCommand returns the command "berth cp".
func CopyCommand(a *cli.App) *cobra.Command {
	var l login
	var recursive, preserve bool
	cmd := &cobra.Command{
		Use:   "cp [-r] SOURCE... TARGET",
		Short: "Copy files to or from a session with OpenSSH",
		Long: `Copy files to or from a session with the scp of OpenSSH on this machine. Either
the sources or the target are in a session, as SESSION:PATH or
SESSION.sub1:PATH. A relative PATH begins in the home directory of the session,
and patterns such as *.csv are expanded there. For folders, without a session:
berth folder put and get.

You log in as with berth ssh.`,
		Example: `  berth cp train.py data.csv train:
  berth cp -r train:results/2026 ./results
  berth cp 'train:*.log' .`,
		Args: cli.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := sideOf(args)
			if err != nil {
				return err
			}
			program, err := find("scp")
			if err != nil {
				return err
			}
			h, g, err := reach(cmd.Context(), a, l, ref)
			if err != nil {
				return err
			}
			line := g.arguments(h)
			if recursive {
				line = append(line, "-r")
			}
			if preserve {
				line = append(line, "-p")
			}
			return replace(program, append(append(line, "--"), onHost(h, args)...))
		},
	}
	l.register(cmd)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "copy directories with their content")
	cmd.Flags().BoolVarP(&preserve, "preserve", "p", false, "keep times and modes of files")
	return cmd
}

// onHost names the host that ssh knows in the paths of a session.
func onHost(h host, args []string) []string {
	var all []string
	for _, arg := range args {
		if _, path, remote := parsePath(arg); remote {
			arg = h.Name + ":" + path
		}
		all = append(all, arg)
	}
	return all
}

// parsePath reads SESSION:PATH. As with scp, a name with a slash before the colon is a local
// file.
func parsePath(text string) (session, path string, remote bool) {
	session, path, remote = strings.Cut(text, ":")
	if !remote || session == "" || strings.Contains(session, "/") {
		return "", text, false
	}
	return session, path, true
}

// sideOf returns the one session that the sources or the target are in.
func sideOf(args []string) (string, error) {
	target, _, up := parsePath(args[len(args)-1])
	from := ""
	for i, arg := range args[:len(args)-1] {
		session, _, remote := parsePath(arg)
		switch {
		case remote && up:
			return "", cli.Usagef("%s and %s are both in a session; copy through this machine, or through a folder that both have mounted", arg, args[len(args)-1])
		case i > 0 && session != from:
			return "", cli.Usagef("%s and %s are not in the same place; copy from one session at a time", args[0], arg)
		}
		from = session
	}
	if !up && from == "" {
		return "", cli.Usagef("no path is in a session; write SESSION:PATH for one side")
	}
	return target + from, nil
}
