// Package images knows the starter images: what their recipes, which tools/mkimage builds, say about
// them.
package images

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/goccy/go-yaml"
)

//go:embed */recipe.yaml
var recipes embed.FS

// Starter is an image that can be built in the source tree.
type Starter struct {
	Name        string `yaml:"name"`
	Tag         string `yaml:"tag"`
	Title       string `yaml:"title"`
	Description string `yaml:"description"`
}

// Command is the command that builds the image.
func (s Starter) Command() string { return "make images IMAGES=" + s.Name }

// Starters returns all starter images by name.
func Starters() ([]Starter, error) {
	files, err := fs.Glob(recipes, "*/recipe.yaml")
	if err != nil {
		return nil, err
	}
	list := make([]Starter, len(files))
	for i, file := range files {
		text, err := recipes.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(text, &list[i]); err != nil {
			return nil, fmt.Errorf("recipe %s: %w", file, err)
		}
	}
	return list, nil
}
