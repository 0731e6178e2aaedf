package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/manager/rekey"
)

func rotateKeysCommand() *cobra.Command {
	var dsn, secrets, data string
	cmd := &cobra.Command{
		Use: "rotate-keys", Args: cobra.NoArgs,
		Short: "Seal all secrets in the database with a new key and drop the old one",
		Long: `Make a new key in the key ring (seal.keys below --secrets), seal every secret in
the database with it, and drop the old keys at the very end. Managers may run
meanwhile when they read the same directory. Interrupted, it goes on when it is
run again.

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
				return errors.New("--postgres and --secrets, or --data, are needed")
			}
			db, err := sql.Open("pgx", dsn)
			if err != nil {
				return fmt.Errorf("open database: %w", err)
			}
			defer db.Close()
			say := func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
			return rekey.Rekeyer{DB: db, Dir: secrets, Say: say}.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&dsn, "postgres", os.Getenv("BERTHD_POSTGRES"), "PostgreSQL connection string")
	pathFlag(cmd, &secrets, "secrets", "", "directory with the cluster's CA and keys, the same for all replicas")
	pathFlag(cmd, &data, "data", "", "directory of the state of a running berthd up")
	return cmd
}
