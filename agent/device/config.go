package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// PluginConfig configures one accelerator plugin of this node.
type PluginConfig struct {
	Path       string
	SHA256     string // of the program; "" skips the check
	ConfigJSON []byte
	Force      bool     // start the plugin even if no hardware of its vendor is on the PCI bus
	Plain      bool     // the plugin cannot use go-plugin's TLS: only the mode of the socket's directory protects the connection
	Env        []string // added to the plugin's environment
	// Roots are the directories of the machine's files, for the plugin and for the scan of the PCI
	// bus; nil and empty select the usual ones. Roots.State must be empty: the agent chooses it.
	Roots *acceleratorpb.Roots
	Allow Allow
}

// Allow lists what a plugin's edits can request beyond devices, mounts and environment. Everything
// in it weakens the isolation of a container, so it is empty by default.
type Allow struct {
	HostIPC      bool     `yaml:"hostIpc"`
	Capabilities []string `yaml:"capabilities"`
	Syscalls     []string `yaml:"syscalls"`
	Sysctls      []string `yaml:"sysctls"`
	Networks     []string `yaml:"networks"`
	// Mounts are directories outside the plugin's roots. Paths below them can be mounted, also
	// writable.
	Mounts []string `yaml:"mounts"`
}

// entry is a plugin in the operator's file.
type entry struct {
	Path   string            `yaml:"path"`
	SHA256 string            `yaml:"sha256"`
	Config map[string]any    `yaml:"config"`
	Force  bool              `yaml:"force"`
	Plain  bool              `yaml:"plain"`
	Env    map[string]string `yaml:"env"`
	Roots  struct {
		Sys    string   `yaml:"sys"`
		Dev    string   `yaml:"dev"`
		Proc   string   `yaml:"proc"`
		Driver string   `yaml:"driver"`
		Path   []string `yaml:"path"`
	} `yaml:"roots"`
	Allow Allow `yaml:"allow"`
}

// ReadPlugins parses the operator's file of plugins.
func ReadPlugins(file string) ([]PluginConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct {
		Plugins []entry `yaml:"plugins"`
	}
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", file, yaml.FormatError(err, false, false), errdefs.ErrInvalidArgument)
	}
	var list []PluginConfig
	for i, e := range all.Plugins {
		cfg, err := e.config()
		if err != nil {
			return nil, fmt.Errorf("%s: plugins[%d].%w", file, i, err)
		}
		list = append(list, cfg)
	}
	return list, nil
}

var sha256Form = regexp.MustCompile(`^([0-9a-f]{64})?$`)

func (e entry) config() (PluginConfig, error) {
	if !sha256Form.MatchString(e.SHA256) {
		return PluginConfig{}, fmt.Errorf("sha256: %.80q: want 64 of 0-9 a-f: %w", e.SHA256, errdefs.ErrInvalidArgument)
	}
	roots := &acceleratorpb.Roots{Sys: e.Roots.Sys, Dev: e.Roots.Dev, Proc: e.Roots.Proc, Driver: e.Roots.Driver, Path: e.Roots.Path}
	err := errors.Join(
		absolute("path", e.Path),
		absolute("roots.sys", roots.Sys, ""), absolute("roots.dev", roots.Dev, ""),
		absolute("roots.proc", roots.Proc, ""), absolute("roots.driver", roots.Driver, ""),
	)
	for _, p := range roots.Path {
		err = errors.Join(err, absolute("roots.path", p))
	}
	for _, p := range e.Allow.Mounts {
		err = errors.Join(err, absolute("allow.mounts", p))
	}
	if err != nil {
		return PluginConfig{}, err
	}
	cfg := PluginConfig{Path: e.Path, SHA256: e.SHA256, Force: e.Force, Plain: e.Plain, Roots: roots, Allow: e.Allow}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		cfg.Env = append(cfg.Env, name+"="+e.Env[name])
	}
	if len(e.Config) > 0 {
		cfg.ConfigJSON, err = json.Marshal(e.Config)
	}
	return cfg, err
}

// absolute returns an error if a path is not absolute, unless it is one of the exceptions.
func absolute(field, path string, except ...string) error {
	if filepath.IsAbs(path) && filepath.Clean(path) == path || slices.Contains(except, path) {
		return nil
	}
	return fmt.Errorf("%s: %.200q: want a clean absolute path: %w", field, path, errdefs.ErrInvalidArgument)
}
