package main

import "github.com/spf13/cobra"

// adminCommand is what people use who look after others. What one may not do
// is refused by the server, so everyone has these commands.
func (a *app) adminCommand() *cobra.Command {
	return group("admin", "Administer users, permissions and limits",
		a.domainCommand(), a.projectCommand(), a.userCommand(), a.policyCommand(), a.groupCommand(), a.shareCommand(), a.idleCommand(), a.roleCommand(),
		a.presetAdminCommand(), a.providerCommand(), a.invitationCommand(), a.auditCommand(), a.retentionCommand(),
		a.taskCommand(), a.volumeCommand(), a.quotaCommand(), a.occupancyCommand(), a.clusterCommand())
}
