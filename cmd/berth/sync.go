package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// syncFlags are what berth folder sync can be told.
type syncFlags struct {
	move                     transferFlags
	checksum, tidy, yes, dry bool
}

func (a *app) folderSync() *cobra.Command {
	var flags syncFlags
	cmd := &cobra.Command{
		Use:   "sync FROM TO",
		Short: "Make a folder as a local directory is, or the other way round",
		Long: `Make a folder as a local directory is, or the other way round: one of FROM and TO
is a local directory, the other FOLDER:PATH, with the colon also for all of it.
(Without a colon, what begins with . or / is local.) Only what differs moves.

A file moves when its size differs, or the time of its last change (by a second or
more where one side counts whole seconds); it brings that time with it. --checksum
compares by contents in place of times, and for that reads all files of the same
size, also over the network.

Nothing is deleted without --delete. What was cut off goes on when it is run
again. Links and special files are left out, empty directories are not.`,
		Example: "  berth folder sync ./src data:src\n  berth folder sync --delete --dry-run data:results ./results",
		Args:    count(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.move.check(); err != nil {
				return err
			}
			local, there, up, err := sides(args[0], args[1])
			if err != nil {
				return err
			}
			c, f, at, err := a.inFolder(cmd.Context(), there)
			if err != nil {
				return err
			}
			verb := map[bool]string{true: "up", false: "down"}[up]
			t := &transfer{transferFlags: flags.move, app: a, client: c, folder: f, bar: a.progress(verb)}
			defer t.bar.Clear()
			return (&syncing{transfer: t, syncFlags: flags, dir: local, at: at, up: up}).run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&flags.checksum, "checksum", false, "compare files of the same size by their contents")
	cmd.Flags().BoolVar(&flags.tidy, "delete", false, "delete at the one side what the other has not; berth asks first")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask before deleting")
	cmd.Flags().BoolVarP(&flags.dry, "dry-run", "n", false, "only say what would be done")
	flags.move.add(cmd)
	return cmd
}

// sides finds out which is the local directory.
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
	return "", "", false, usagef("one of both must be a local directory, as ./%s, and one FOLDER:PATH, as %s:", from, to)
}
