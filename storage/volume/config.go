package volume

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/internal/scopemount"
)

// listed is a volume in a configuration file.
type listed struct {
	Name    string         `yaml:"name"`
	Mount   string         `yaml:"mount"`
	Plugin  string         `yaml:"plugin"`
	SHA256  string         `yaml:"sha256"`
	Options map[string]any `yaml:"options"`

	ScopeMount *struct {
		Type    string   `yaml:"type"`
		Source  string   `yaml:"source"`
		Options []string `yaml:"options"`
	} `yaml:"scope_mount"`
}

// Read reads a configuration file of volumes. A plugin without a directory is looked up in
// plugins.
func Read(file, plugins string) ([]Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct {
		Volumes []listed `yaml:"volumes"`
	}
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		// The message leaves out the line itself, which can contain a secret option.
		return nil, fmt.Errorf("%s: %s: %w", file, yaml.FormatError(err, false, false), errdefs.ErrInvalidArgument)
	}
	var list []Config
	for i, e := range all.Volumes {
		cfg, err := e.config(plugins)
		if err == nil {
			err = cfg.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: volumes[%d]: %w", file, i, err)
		}
		list = append(list, cfg)
	}
	return list, nil
}

func (e listed) config(plugins string) (Config, error) {
	cfg := Config{Name: e.Name, MountPath: e.Mount, SHA256: e.SHA256, Backend: e.Plugin}
	switch {
	case e.Plugin == "":
		return cfg, invalid("plugin is missing: give a name such as vfs or btrfs, or the path of a program")
	case filepath.IsAbs(e.Plugin):
	case filepath.Base(e.Plugin) == e.Plugin:
		cfg.Backend = filepath.Join(plugins, e.Plugin)
	default:
		return cfg, invalid("plugin: %.200q must be a name without a directory, or an absolute path", e.Plugin)
	}
	if info, err := os.Stat(cfg.Backend); err != nil || !info.Mode().IsRegular() {
		return cfg, invalid("plugin: %s is not a program", cfg.Backend)
	}
	if m := e.ScopeMount; m != nil {
		// The directory is a plain one; the file systems are mounted below it.
		cfg.ScopeMount, cfg.Create = &scopemount.Rule{Type: m.Type, Source: m.Source, Options: m.Options}, true
	}
	if len(e.Options) == 0 {
		return cfg, nil
	}
	options, err := json.Marshal(e.Options)
	if err != nil {
		return cfg, invalid("options: %v", err)
	}
	cfg.OptionsJSON = string(options)
	return cfg, nil
}
