// Command berth works with a Berth cluster from the command line, through the
// public API only.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/account"
	"github.com/berthhq/berth/cmd/berth/admin"
	"github.com/berthhq/berth/cmd/berth/agent"
	"github.com/berthhq/berth/cmd/berth/api"
	"github.com/berthhq/berth/cmd/berth/app"
	"github.com/berthhq/berth/cmd/berth/audit"
	"github.com/berthhq/berth/cmd/berth/chat"
	"github.com/berthhq/berth/cmd/berth/chats"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/deploy"
	"github.com/berthhq/berth/cmd/berth/folder"
	"github.com/berthhq/berth/cmd/berth/image"
	"github.com/berthhq/berth/cmd/berth/notices"
	"github.com/berthhq/berth/cmd/berth/objectstorage"
	"github.com/berthhq/berth/cmd/berth/open"
	"github.com/berthhq/berth/cmd/berth/preset"
	"github.com/berthhq/berth/cmd/berth/queue"
	"github.com/berthhq/berth/cmd/berth/session"
	"github.com/berthhq/berth/cmd/berth/sessioncopy"
	"github.com/berthhq/berth/cmd/berth/sessiongroup"
	"github.com/berthhq/berth/cmd/berth/ssh"
	"github.com/berthhq/berth/cmd/berth/statistics"
	"github.com/berthhq/berth/cmd/berth/template"
	"github.com/berthhq/berth/cmd/berth/top"
	"github.com/berthhq/berth/cmd/berth/usage"
)

// version is set by the linker.
var version = "dev"

func main() {
	a := cli.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	a.Version = version
	// run and exec handle interrupts themselves; for all other commands they cancel.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a.OwnSignals = stop
	code := a.Main(ctx, os.Args[1:], commands(a)...)
	stop()
	os.Exit(code)
}

// commands returns every command, in the order of the help.
func commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		account.LoginCommand(a),
		account.LogoutCommand(a),
		account.WhoamiCommand(a),
		account.PasswdCommand(a),
		account.ProfileCommand(a),
		account.ContextCommand(a),
		session.RunCommand(a),
		session.Command(a),
		top.Command(a),
		open.Command(a),
		template.Command(a),
		template.ApplyCommand(a),
		app.Command(a),
		ssh.Command(a),
		sessioncopy.Command(a),
		ssh.ConfigCommand(a),
		sessiongroup.Command(a),
		queue.Command(a),
		folder.Command(a),
		objectstorage.Command(a),
		image.Command(a),
		deploy.Command(a),
		chat.Command(a),
		chats.Command(a),
		agent.Command(a),
		preset.Command(a),
		account.TokenCommand(a),
		account.KeypairCommand(a),
		account.SSHKeyCommand(a),
		account.LoginsCommand(a),
		account.TOTPCommand(a),
		audit.ActivityCommand(a),
		notices.Command(a),
		usage.LimitsCommand(a),
		usage.Command(a),
		statistics.Command(a),
		usage.BudgetCommand(a),
		admin.Command(a),
		api.Command(a),
		api.VersionCommand(a),
	}
}
