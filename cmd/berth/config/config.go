// Package config stores the contexts of the berth command: the servers and the tokens for them.
// Only the berth command imports it.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/internal/wholefile"
)

// Context is one server with one login.
type Context struct {
	Name    string `yaml:"name" json:"name"`
	URL     string `yaml:"url" json:"url"`
	User    string `yaml:"user" json:"user"`
	Token   string `yaml:"token" json:"-"`
	TokenID string `yaml:"tokenId,omitempty" json:"-"`
}

// File is the whole configuration.
type File struct {
	Current  string    `yaml:"current"`
	Contexts []Context `yaml:"contexts"`
	// Devices maps the URL of a server to the cookie by which it recognizes this device at the next
	// login.
	Devices map[string]string `yaml:"devices,omitempty"`
}

// Path returns the path of the configuration: $BERTH_CONFIG, or config.yaml in the user's
// configuration directory.
func Path(env func(string) string) (string, error) {
	if p := env("BERTH_CONFIG"); p != "" {
		return p, nil
	}
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "berth", "config.yaml"), nil
	}
	home := env("HOME")
	if home == "" {
		return "", fmt.Errorf("neither BERTH_CONFIG nor HOME is set: %w", errdefs.ErrFailedPrecondition)
	}
	return filepath.Join(home, ".config", "berth", "config.yaml"), nil
}

// Load reads the configuration; a missing file is an empty one.
func Load(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var f File
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	return &f, nil
}

// Save replaces the configuration atomically. Only the user can read it.
func (f *File) Save(path string) error {
	b, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	if err := wholefile.Write(path, b); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	return nil
}

// Get returns the named context, or the current one for "". It returns nil if there is no current
// one.
func (f *File) Get(name string) (*Context, error) {
	wanted := name
	if wanted == "" {
		wanted = f.Current
	}
	for i := range f.Contexts {
		if f.Contexts[i].Name == wanted {
			return &f.Contexts[i], nil
		}
	}
	if name == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("context %q does not exist: %w", name, errdefs.ErrNotFound)
}

// Set adds the context or replaces the one of the same name, and makes it
// current.
func (f *File) Set(c Context) {
	f.Current = c.Name
	for i := range f.Contexts {
		if f.Contexts[i].Name == c.Name {
			f.Contexts[i] = c
			return
		}
	}
	f.Contexts = append(f.Contexts, c)
}

// Remove removes the named context. No other context becomes current.
func (f *File) Remove(name string) {
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
}

// Know stores the cookie by which the server at a URL recognizes this device. It outlives the
// context, because the next login may create another context.
func (f *File) Know(url, device string) {
	if f.Devices == nil {
		f.Devices = map[string]string{}
	}
	f.Devices[url] = device
}
