package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/internal/fixture"
)

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
			return all, fmt.Errorf("--fixture %s: %s has plugin %s already, and a machine runs one of a kind", m.Name, other, m.Plugin)
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
				return nil, fmt.Errorf("--plugin-file: %s is there twice, or for a --fixture", cfg.Path)
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
