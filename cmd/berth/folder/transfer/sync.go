package transfer

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// syncFlags are the flags of berth folder sync.
type syncFlags struct {
	move                     transferFlags
	checksum, tidy, yes, dry bool
}

// SyncCommand returns the command "berth folder sync".
func SyncCommand(a *cli.App) *cobra.Command {
	var flags syncFlags
	cmd := &cobra.Command{
		Use:   "sync FROM TO",
		Short: "Synchronize a folder with a local directory, in one direction",
		Long: `Synchronize a folder with a local directory, in one direction: one of FROM and TO
is a local directory, the other is FOLDER:PATH, or FOLDER: for the whole folder.
(Without a colon, a path that begins with . or / is local.) Only differences are
transferred.

A file is transferred if its size or its modification time differs (by a second or
more if one side has whole seconds); it keeps that time. --checksum compares the
contents instead of times, and reads all files of the same size, also over the
network.

Nothing is deleted without --delete. To continue after an interrupt, run the same
command again. Links and special files are skipped, empty directories are not.`,
		Example: "  berth folder sync ./src data:src\n  berth folder sync --delete --dry-run data:results ./results",
		Args:    cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.move.check(); err != nil {
				return err
			}
			local, there, up, err := sides(args[0], args[1])
			if err != nil {
				return err
			}
			c, f, at, err := a.FindPlace(cmd.Context(), there)
			if err != nil {
				return err
			}
			verb := map[bool]string{true: "up", false: "down"}[up]
			t := &transfer{transferFlags: flags.move, app: a, client: c, folder: f, bar: a.Progress(verb)}
			defer t.bar.Clear()
			return (&syncing{transfer: t, syncFlags: flags, dir: local, at: at, up: up}).run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&flags.checksum, "checksum", false, "compare files of the same size by their contents")
	cmd.Flags().BoolVar(&flags.tidy, "delete", false, "delete files at the destination that the source does not have; berth asks first")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask before deleting")
	cmd.Flags().BoolVarP(&flags.dry, "dry-run", "n", false, "only print the changes")
	flags.move.add(cmd)
	return cmd
}

// sides returns which of the two arguments is the local directory.
func sides(from, to string) (local, there string, up bool, err error) {
	isThere := func(s string) bool {
		return strings.Contains(s, ":") && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "/")
	}
	isLocal := func(s string) bool { return strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") }
	switch {
	case isThere(to) && !isThere(from), isLocal(from) && !isLocal(to):
		return from, to, true, nil
	case isThere(from) && !isThere(to), isLocal(to) && !isLocal(from):
		return to, from, false, nil
	}
	return "", "", false, cli.Usagef("one of both must be a local directory, as ./%s, and one FOLDER:PATH, as %s:", from, to)
}
