// Package ssh has the commands that reach sessions with OpenSSH: ssh, scp, and a file for its
// configuration.
package ssh

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// Command returns the command "berth ssh".
func Command(a *cli.App) *cobra.Command {
	var l login
	cmd := &cobra.Command{
		Use:   "ssh SESSION[.CONTAINER] [flags] [-- SSH-OPTION... [COMMAND [ARG...]]]",
		Short: "Log in to a session, or run a command there, with OpenSSH",
		Long: `Log in to a session, or run a command there, with the ssh of OpenSSH on this
machine. SESSION.sub1 is another container of the session. The arguments after
-- are options of ssh and the command. berth tells ssh the address and the host
key of the gateway, so that it does not ask whether to trust the host.

You log in with an SSH key of your account (see: berth ssh-key), or with
--token. The key is found in ~/.ssh; -i names another file. The exit code is
that of ssh, which is that of the command. If berth itself fails, the exit code
is 125.`,
		Example: `  berth ssh train
  berth ssh train -- nvidia-smi
  berth ssh train -- -N -L 6006:localhost:6006
  berth ssh train.sub1 -- -t top`,
		Annotations:       map[string]string{cli.PassesCode: "yes"},
		ValidArgsFunction: a.CompleteSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after := cli.Split(cmd, args)
			if len(before) != 1 {
				return cli.Usagef("usage: %s", cmd.UseLine())
			}
			program, err := find("ssh")
			if err != nil {
				return err
			}
			h, g, err := reach(cmd.Context(), a, l, before[0])
			if err != nil {
				return err
			}
			return replace(program, append(append(g.arguments(h), h.Name), after...))
		},
	}
	l.register(cmd)
	return cmd
}

// find returns the path of an OpenSSH program.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed on this machine; install the client of OpenSSH, for example: apt install openssh-client: %w",
			program, errdefs.ErrFailedPrecondition)
	}
	return path, nil
}

// replace replaces this process with a program, so that the program gets the terminal, the standard
// streams and every signal, and sets the exit code. It returns only on an error.
func replace(program string, args []string) error {
	return fmt.Errorf("run %s: %w", program, syscall.Exec(program, append([]string{program}, args...), os.Environ()))
}
