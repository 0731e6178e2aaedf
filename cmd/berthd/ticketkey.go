package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/ticket"
)

func ticketKeyCommand() *cobra.Command {
	var secrets, data string
	var stolen bool
	var after time.Duration
	cmd := &cobra.Command{
		Use: "rotate-ticket-key", Args: cobra.NoArgs,
		Short: "Sign tickets for uploads and downloads with a new key",
		Long: `Add a new key to the ring ticket.keys below --secrets. Managers that run hear of it
within seconds and tell the storage proxies. It begins to sign after a minute;
tickets that the old key has signed count for another day, so that nothing is
interrupted, and then no longer.

When a key was stolen, --stolen drops all keys before the new one at once: transfers
under way end, and go on with new tickets where their programs ask for some.`,
		Example: "  berthd rotate-ticket-key --data /var/lib/berth",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (data == "") == (secrets == "") {
				return errors.New("one of --secrets and --data is needed")
			}
			if after < 0 {
				return fmt.Errorf("--after: %s is in the past", after)
			}
			if data != "" {
				secrets = filepath.Join(data, "secrets")
			}
			out := cmd.OutOrStdout()
			if stolen {
				if err := ticket.Replace(secrets); err != nil {
					return err
				}
				fmt.Fprintln(out, "tickets of the old keys count no longer")
				return nil
			}
			since := time.Now().Add(after).Truncate(time.Second)
			until, err := ticket.Rotate(secrets, since)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "the new key signs from %s; tickets of the old one count until %s\n", since.Format(time.RFC3339), until.Format(time.RFC3339))
			return nil
		},
	}
	pathFlag(cmd, &secrets, "secrets", "", "directory with the cluster's CA and keys, the same for all replicas")
	pathFlag(cmd, &data, "data", "", "directory of the state of berthd up")
	cmd.Flags().BoolVar(&stolen, "stolen", false, "drop the old keys at once")
	cmd.Flags().DurationVar(&after, "after", time.Minute, "when it begins to sign: by then every replica must know it")
	return cmd
}
