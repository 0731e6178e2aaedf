// Command berth works with a Berth cluster from the command line, through the
// public API only.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	a.version = version
	// run and exec handle these two themselves; for all else they cancel.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a.ownSignals = stop
	code := a.main(ctx, os.Args[1:], commands(a)...)
	stop()
	os.Exit(code)
}

// commands returns every command, in the order of the help.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.loginCommand(),
		a.logoutCommand(),
		a.whoamiCommand(),
		a.passwdCommand(),
		a.profileCommand(),
		a.contextCommand(),
		a.runCommand(),
		a.sessionCommand(),
		a.sessionGroupCommand(),
		a.queueCommand(),
		a.folderCommand(),
		a.objectStorageCommand(),
		a.imageCommand(),
		a.agentCommand(),
		a.presetCommand(),
		a.tokenCommand(),
		a.keypairCommand(),
		a.sshKeyCommand(),
		a.loginsCommand(),
		a.totpCommand(),
		a.activityCommand(),
		a.limitsCommand(),
		a.usageCommand(),
		a.adminCommand(),
		a.apiCommand(),
		a.versionCommand(),
	}
}
