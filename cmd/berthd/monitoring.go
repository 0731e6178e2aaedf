package main

import (
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/remotewrite"
)

// monitoringFlags are the flags of a manager about an outside Prometheus.
func monitoringFlags(cmd *cobra.Command, cfg *manager.Config) {
	f, to := cmd.Flags(), &cfg.RemoteWrite
	pathFlag(cmd, &cfg.MetricsTokenFile, "metrics-token-file", "", "file with a bearer token for /metrics and the metrics of all roles at the address of the page")
	f.StringVar(&to.URL, "remote-write", "", "URL of the remote write of a Prometheus, to which measurements of sessions, machines and deployments are sent (default off)")
	pathFlag(cmd, &to.TokenFile, "remote-write-token-file", "", "file with a bearer token for --remote-write")
	f.StringVar(&to.User, "remote-write-user", "", "user of --remote-write, who has a password")
	pathFlag(cmd, &to.PasswordFile, "remote-write-password-file", "", "file with the password of --remote-write-user")
	f.DurationVar(&to.Buffer, "remote-write-buffer", remotewrite.DefaultBuffer, "age up to which measurements are sent after an outage of --remote-write")
}
