package main

import (
	"github.com/spf13/pflag"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/manager/notice/mail"
)

// noticeFlags are the options of notices.
func noticeFlags(cmd *cobra.Command, reach *[]string, server *mail.Config) {
	f := cmd.Flags()
	f.StringSliceVar(reach, "notice-network", nil, "internal hosts and networks that webhooks of notices can have")
	mailFlags(f, server)
	pathFlag(cmd, &server.PasswordFile, "smtp-password-file", "", "file with the password of --smtp-user")
	pathFlag(cmd, &server.CAFile, "smtp-ca", "", "PEM file with the CAs of the mail server's certificate (default those of the system)")
}

func mailFlags(f *pflag.FlagSet, server *mail.Config) {
	f.StringVar(&server.Host, "smtp-host", "", "mail server that notices are sent with (default: no mail)")
	f.IntVar(&server.Port, "smtp-port", 0, "port of --smtp-host (default 587, with --smtp-security tls 465, with none 25)")
	f.StringVar((*string)(&server.Security), "smtp-security", "starttls", "encryption of the connection to --smtp-host: starttls, tls, or none for a server on this machine")
	f.StringVar(&server.User, "smtp-user", "", "user of --smtp-host (default: no login)")
	f.StringVar(&server.From, "smtp-from", "", "sender of mails, such as \"Berth <berth@example.org>\"")
}
