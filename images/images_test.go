package images

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestStartersAreTheRecipesOfTheTree(t *testing.T) {
	got, err := Starters()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
		if s.Tag == "" || s.Title == "" || s.Description == "" {
			t.Errorf("incomplete: %+v", s)
		}
	}
	dirs, err := filepath.Glob("*/recipe.yaml")
	if err != nil || len(dirs) == 0 || len(dirs) != len(names) {
		t.Fatalf("%q for %q (%v)", names, dirs, err)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(name, "recipe.yaml")); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%q are not sorted", names)
	}
}
