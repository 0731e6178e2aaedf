package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/goccy/go-yaml"
)

// format is increased when images of an older mkimage must be built again.
const format = "2"

// Recipe is the file recipe.yaml of an image's folder.
type Recipe struct {
	Name        string            `yaml:"name"`
	Tag         string            `yaml:"tag"`
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Date        string            `yaml:"date"` // date of the image and of every newer file
	Suite       string            `yaml:"suite"`
	Variant     string            `yaml:"variant"` // variant of mmdebstrap, which selects the base system
	Packages    []string          `yaml:"packages"`
	Build       []string          `yaml:"build"`   // packages that are removed after the build
	Pip         string            `yaml:"pip"`     // lock file of Python packages, for /opt/venv
	Npm         string            `yaml:"npm"`     // lock file of Node packages, for /opt/npm
	Exclude     []string          `yaml:"exclude"` // paths that no package may install
	Env         map[string]string `yaml:"env"`
	WorkDir     string            `yaml:"workdir"`
	Cmd         []string          `yaml:"cmd"`
	Apps        []App             `yaml:"apps"`

	dir  string
	date time.Time
}

// read loads the recipe of a folder.
func read(dir string) (Recipe, error) {
	r := Recipe{dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, "recipe.yaml"))
	if err != nil {
		return r, err
	}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(&r); err != nil {
		return r, fmt.Errorf("read %s: %w", filepath.Join(dir, "recipe.yaml"), err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("read %s: %w", dir, err)
	}
	r.date, err = time.Parse(time.DateOnly, r.Date)
	if err != nil {
		return r, fmt.Errorf("read %s: date: %w", dir, err)
	}
	return r, nil
}

// check returns an error if a field is missing or does not fit.
func (r Recipe) check() error {
	for field, v := range map[string]string{"name": r.Name, "tag": r.Tag, "suite": r.Suite, "variant": r.Variant} {
		if v == "" {
			return fmt.Errorf("no %s", field)
		}
	}
	if r.Variant == "extract" && (r.Pip != "" || r.Npm != "" || len(r.Build) > 0) {
		return errors.New("variant extract installs nothing: pip, npm and build need another variant")
	}
	if r.Pip != "" {
		if err := checkPip(filepath.Join(r.dir, r.Pip)); err != nil {
			return err
		}
	}
	if r.Npm != "" {
		if err := checkNpm(filepath.Join(r.dir, r.Npm)); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, a := range r.Apps {
		if err := a.check(); err != nil {
			return fmt.Errorf("app %q: %w", a.Name, err)
		}
		if seen[a.Name] {
			return fmt.Errorf("app %q: the name is used twice", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

// hash returns a hash of all files of the folder. An image with the same hash is current.
func (r Recipe) hash() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, format)
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %x\n", d.Name(), sha256.Sum256(b))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// env returns the environment, ordered by name.
func (r Recipe) env() []string {
	var out []string
	for k, v := range r.Env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}
