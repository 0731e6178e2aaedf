package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/fixture"
)

// fixtureCommand changes the simulated machines of berthd up.
func fixtureCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "fixture", Short: "Machines that are made up: see them, and let things happen to them"}
	exit, stderr := 1, ""
	fail := verb("fail", "COMMAND", "Let a vendor's program end with an error, or a server cut its connections", func(t *fixture.Tree, name string) error {
		return t.Fail(name, exit, stderr)
	})
	fail.Flags().IntVar(&exit, "exit", exit, "exit status")
	fail.Flags().StringVar(&stderr, "stderr", "", "its text on standard error")
	cmd.AddCommand(
		&cobra.Command{Use: "ls", Short: "List the built-in machines", Args: cobra.NoArgs, RunE: listFixtures},
		verb("change", "CHANGE", "Let one of the machine's changes happen", (*fixture.Tree).Change),
		verb("hang", "COMMAND", "Let a vendor's program, or a server, no longer answer", (*fixture.Tree).Hang),
		fail,
		verb("flood", "COMMAND", "Let a vendor's program print 10 MB of rubbish", (*fixture.Tree).Flood),
		verb("heal", "COMMAND", "Let a vendor's program, or a server, work again", (*fixture.Tree).Heal),
	)
	return cmd
}

func listFixtures(cmd *cobra.Command, _ []string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPLUGIN\tDEVICES\tCHANGES\tCOMMANDS\tDESCRIPTION")
	for _, name := range fixture.Names() {
		m, err := fixture.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", m.Name, m.Plugin, m.Expect.Devices,
			names(m.Changes), names(m.Commands), m.Description)
	}
	return w.Flush()
}

func names[V any](m map[string]V) string {
	if len(m) == 0 {
		return "-"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}

// verb changes a machine of a running berthd up.
func verb(use, what, short string, do func(t *fixture.Tree, what string) error) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: use + " MACHINE " + what, Short: short, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if filepath.Base(args[0]) != args[0] {
				return fmt.Errorf("machine %q: want its name", args[0])
			}
			dir := fixtureDir(data, args[0])
			if _, err := os.Stat(dir); err != nil {
				return fmt.Errorf("machine %s does not run there: %w", args[0], err)
			}
			t, err := fixture.Open(dir)
			if err != nil {
				return err
			}
			return do(t, args[1])
		},
	}
	pathFlag(cmd, &data, "data", "var", "directory of berthd up's state")
	return cmd
}

func fixtureDir(data, name string) string { return filepath.Join(data, "fixtures", name) }
