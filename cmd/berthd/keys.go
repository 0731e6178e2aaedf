package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/manager/rekey"
)

func rotateKeysCommand() *cobra.Command {
	var dsn, secrets, data string
	cmd := &cobra.Command{
		Use: "rotate-keys", Args: cobra.NoArgs,
		Short: "Encrypt all secrets in the database with a new key and remove the old one",
		Long: `Make a new key in the key ring (seal.keys below --secrets), seal every secret in
the database with it, and drop the old keys at the very end. Managers can keep
running if they read the same directory. Run it again to continue after an
interruption.

For a platform that berthd up runs on this machine, --data alone is enough.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if data != "" {
				if cmd.Flags().Changed("postgres") || secrets != "" {
					return errors.New("--data replaces --postgres and --secrets")
				}
				var close func() error
				if dsn, close, err = postgres.Find(filepath.Join(data, "stores", "postgres")); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, close()) }()
				secrets = filepath.Join(data, "secrets")
			}
			if dsn == "" || secrets == "" {
				return errors.New("--postgres and --secrets, or --data, are required")
			}
			db, err := sql.Open("pgx", dsn)
			if err != nil {
				return fmt.Errorf("open database: %w", err)
			}
			defer db.Close()
			say := func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
			return rekey.Rekeyer{DB: db, Dir: secrets, Progress: say}.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&dsn, "postgres", os.Getenv("BERTHD_POSTGRES"), "PostgreSQL connection string")
	pathFlag(cmd, &secrets, "secrets", "", "directory with the cluster's CA and keys, the same for all replicas")
	pathFlag(cmd, &data, "data", "", "directory of the state of a running berthd up")
	return cmd
}

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
under way end, and continue if their programs request new tickets.`,
		Example: "  berthd rotate-ticket-key --data /var/lib/berth",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (data == "") == (secrets == "") {
				return errors.New("one of --secrets and --data is required")
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
				fmt.Fprintln(out, "tickets that were signed with the old keys are no longer valid")
				return nil
			}
			since := time.Now().Add(after).Truncate(time.Second)
			until, err := ticket.Rotate(secrets, since)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "the new key signs from %s; tickets of the old one are valid until %s\n", since.Format(time.RFC3339), until.Format(time.RFC3339))
			return nil
		},
	}
	pathFlag(cmd, &secrets, "secrets", "", "directory with the cluster's CA and keys, the same for all replicas")
	pathFlag(cmd, &data, "data", "", "directory of the state of berthd up")
	cmd.Flags().BoolVar(&stolen, "stolen", false, "remove the old keys at once")
	cmd.Flags().DurationVar(&after, "after", time.Minute, "`time` after which the new key signs; until then, every replica must have read it")
	return cmd
}
