package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/internal/fixture"
)

// fixtureCommand changes the simulated machines of berthd up.
func fixtureCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "fixture", Short: "List simulated machines, and simulate events on them"}
	exit, stderr := 1, ""
	fail := verb("fail", "COMMAND", "Make a vendor's program end with an error, or a server close its connections", func(t *fixture.Tree, name string) error {
		return t.Fail(name, exit, stderr)
	})
	fail.Flags().IntVar(&exit, "exit", exit, "exit status")
	fail.Flags().StringVar(&stderr, "stderr", "", "its text on standard error")
	cmd.AddCommand(
		&cobra.Command{Use: "ls", Short: "List the built-in machines", Args: cobra.NoArgs, RunE: listFixtures},
		verb("change", "CHANGE", "Apply one of the machine's changes", (*fixture.Tree).Change),
		verb("hang", "COMMAND", "Make a vendor's program, or a server, stop responding", (*fixture.Tree).Hang),
		fail,
		verb("flood", "COMMAND", "Make a vendor's program print 10 MB of random text", (*fixture.Tree).Flood),
		verb("heal", "COMMAND", "Make a vendor's program, or a server, work again", (*fixture.Tree).Heal),
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
				return fmt.Errorf("machine %q is not the name of a machine", args[0])
			}
			dir := fixtureDir(data, args[0])
			if _, err := os.Stat(dir); err != nil {
				return fmt.Errorf("machine %s is not running in this directory: %w", args[0], err)
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

// machines are the simulated machines whose accelerators berthd up offers.
type machines []*fixture.Tree

// machines renders the simulated machines in their initial state.
func (o upOptions) machines() (all machines, err error) {
	if err := os.RemoveAll(filepath.Join(o.data, "fixtures")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, all.close())
		}
	}()
	plugins := map[string]string{}
	if o.mock > 0 {
		plugins["mock"] = "--mock-accelerators"
	}
	for _, name := range o.fixtures {
		m, err := fixture.Load(name)
		if err != nil {
			return all, fmt.Errorf("--fixture: %w", err)
		}
		if other, ok := plugins[m.Plugin]; ok {
			return all, fmt.Errorf("--fixture %s: %s already has plugin %s; a machine can run only one of each", m.Name, other, m.Plugin)
		}
		plugins[m.Plugin] = m.Name
		if _, err := os.Stat(o.plugin(m.Plugin)); err != nil {
			return all, fmt.Errorf("--fixture %s: its plugin: %w", m.Name, err)
		}
		t, err := m.Render(fixtureDir(o.data, m.Name))
		if err != nil {
			return all, fmt.Errorf("--fixture: %w", err)
		}
		all = append(all, t)
	}
	return all, nil
}

func (m machines) close() error {
	var errs []error
	for _, t := range m {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// plugin returns the path of an accelerator plugin.
func (o upOptions) plugin(name string) string {
	return filepath.Join(o.bin, "plugins/accelerator", name)
}

// accelerators returns every accelerator plugin that was built; plugins without hardware of
// their vendor do not start. The mock plugin must be requested. Settings of a program in the
// configuration file or of a simulated machine take precedence.
func (o upOptions) accelerators(machines machines) ([]agent.PluginConfig, error) {
	var list []agent.PluginConfig
	said := map[string]bool{}
	for _, t := range machines {
		cfg := agent.PluginConfig{
			Path: o.plugin(t.Machine.Plugin), Force: true, Roots: t.Roots(), ConfigJSON: t.Config(), Allow: device.Allow(t.Machine.Allow),
		}
		list, said[cfg.Path] = append(list, cfg), true
	}
	if o.pluginFile != "" {
		operators, err := device.ReadPlugins(o.pluginFile)
		if err != nil {
			return nil, fmt.Errorf("--plugin-file: %w", err)
		}
		for _, cfg := range operators {
			if said[cfg.Path] {
				return nil, fmt.Errorf("--plugin-file: %s is listed twice, or is also used by a --fixture", cfg.Path)
			}
			list, said[cfg.Path] = append(list, cfg), true
		}
	}
	paths, err := filepath.Glob(o.plugin("*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		cfg := agent.PluginConfig{Path: path}
		if said[path] {
			continue
		}
		if path == o.plugin("mock") {
			if o.mock <= 0 {
				continue
			}
			cfg.Force = true
			cfg.ConfigJSON = fmt.Appendf(nil, `{"devices":%d,"seed":1}`, o.mock)
		}
		list = append(list, cfg)
	}
	return list, nil
}
