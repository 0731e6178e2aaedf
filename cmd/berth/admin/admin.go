// Package admin collects the commands of administrators.
package admin

import (
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/admin/announce"
	"github.com/berthhq/berth/cmd/berth/admin/chatendpoint"
	"github.com/berthhq/berth/cmd/berth/admin/cluster"
	"github.com/berthhq/berth/cmd/berth/admin/people"
	"github.com/berthhq/berth/cmd/berth/admin/policy"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/admin/volume"
	"github.com/berthhq/berth/cmd/berth/audit"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/preset"
	"github.com/berthhq/berth/cmd/berth/statistics"
)

// Command returns the commands for administrators. Every user can see them, because the server
// rejects what a user is not permitted to do.
func Command(a *cli.App) *cobra.Command {
	return cli.Group("admin", "Administer users, permissions and limits",
		people.DomainCommand(a), people.ProjectCommand(a), people.UserCommand(a), policy.Command(a), policy.GroupCommand(a), policy.ShareCommand(a), policy.PriceCommand(a), policy.BudgetCommand(a), policy.IdleCommand(a), people.RoleCommand(a),
		preset.AdminCommand(a), chatendpoint.Command(a), announce.Command(a), people.ProviderCommand(a), people.InvitationCommand(a), audit.Command(a), audit.RetentionCommand(a),
		task.Command(a), volume.Command(a), volume.QuotaCommand(a), statistics.WasteCommand(a), cluster.OccupancyCommand(a), cluster.Command(a),
		cluster.DoctorCommand(a))
}
