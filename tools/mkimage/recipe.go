package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/goccy/go-yaml"
)

// format changes when an image packed by an older mkimage will not do.
const format = "1"

// Recipe is the file recipe.yaml of an image's folder.
type Recipe struct {
	Name        string            `yaml:"name"`
	Tag         string            `yaml:"tag"`
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Suite       string            `yaml:"suite"`
	Variant     string            `yaml:"variant"` // of mmdebstrap: what comes beside the packages
	Packages    []string          `yaml:"packages"`
	Exclude     []string          `yaml:"exclude"` // paths that no package may install
	Env         map[string]string `yaml:"env"`
	WorkDir     string            `yaml:"workdir"`
	Cmd         []string          `yaml:"cmd"`

	dir string
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
	for field, v := range map[string]string{"name": r.Name, "tag": r.Tag, "suite": r.Suite, "variant": r.Variant} {
		if v == "" {
			return r, fmt.Errorf("read %s: no %s", dir, field)
		}
	}
	return r, nil
}

// hash covers every file of the folder; an image with the same hash is current.
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

// env is the environment in the order of its names.
func (r Recipe) env() []string {
	var out []string
	for k, v := range r.Env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}
