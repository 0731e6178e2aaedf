package volume

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containerd/errdefs"
)

func TestTree(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"b", "a/z", "a/b/c", "a.txt", "a/b-c", "d/e/f/g", "a/0"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "b", "a/up": "..", "out": "/etc"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	f := &Folder{dir: dir}
	for name, c := range map[string]struct {
		path string
		want []string
	}{
		"all":          {"", []string{"a/0", "a/b/c", "a/b-c", "a/z", "a.txt", "b", "d/e/f/g"}},
		"a directory":  {"a", []string{"a/0", "a/b/c", "a/b-c", "a/z"}},
		"a file":       {"a/b/c", []string{"a/b/c"}},
		"a deep one":   {"d/e", []string{"d/e/f/g"}},
		"through none": {"d/e/f", []string{"d/e/f/g"}},
	} {
		for limit := 1; limit < 9; limit++ {
			var got []string
			after := ""
			for more := true; more; {
				var page []Entry
				if page, more, err = f.Tree(t.Context(), c.path, limit, after); err != nil {
					t.Fatalf("%s by %d after %q: %v", name, limit, after, err)
				}
				for _, e := range page {
					got, after = append(got, e.Path), e.Path
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s by %d: %v, want %v", name, limit, got, c.want)
			}
		}
	}

	// Entries that were deleted since the previous page do not end the listing.
	if err := os.RemoveAll(filepath.Join(root, "a/b")); err != nil {
		t.Fatal(err)
	}
	page, more, err := f.Tree(t.Context(), "", 2, "a/b/c")
	if err != nil || !more || page[0].Path != "a/b-c" {
		t.Errorf("after a deleted entry: %v %v %v", page, more, err)
	}
	if _, _, err := f.Tree(t.Context(), "no", 9, ""); !errdefs.IsNotFound(err) {
		t.Error(err)
	}
	if _, _, err := f.Tree(t.Context(), "a", 9, "b"); !errdefs.IsInvalidArgument(err) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := f.Tree(ended, "", 9, ""); err == nil {
		t.Error("it continues after its end")
	}
}
