package folders

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A directory and a folder are synchronized in both directions, including deletions. A second run
// has nothing to do.
func TestSyncBothWays(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	at := func(name ...string) string { return filepath.Join(berth.Dir, filepath.Join(name...)) }
	fill(t, at("here"), 60, 1<<20)
	berth.Must("folder", "create", "both", "--volume", "disk")
	same := func(dir string) {
		t.Helper()
		look := t.TempDir()
		berth.Must("folder", "get", "-r", "both", look)
		if d := cmp.Diff(sums(t, at(dir)), sums(t, filepath.Join(look, "both"))); d != "" {
			t.Errorf("%s and the folder differ:\n%s", dir, d)
		}
	}
	idle := func(from, to string) {
		t.Helper()
		before := sent()
		if r := berth.Run("folder", "sync", from, to, "--delete", "--dry-run", "-o", "json"); r.Code != 0 || strings.TrimSpace(r.Stdout) != "[]" {
			t.Errorf("from %s to %s there is still to do: %+v", from, to, r)
		}
		berth.Must("folder", "sync", from, to, "--delete", "--yes")
		if n := sent() - before; n != 0 {
			t.Errorf("%d bytes were sent though nothing had changed", n)
		}
	}
	berth.Must("folder", "sync", "./here", "both:")
	same("here")
	idle("./here", "both:")

	// In the local directory, one file is deleted, one changes and keeps its size, and one becomes
	// a directory.
	remove(t, at("here/part-1"))
	put(t, at("here/part-2/0/new\nline.txt"), []byte("not possible there"))
	put(t, at("here/part-2/0/new.txt"), []byte("new"))
	flip(t, at("here/a large one.bin"))
	remove(t, at("here/part-3/2"))
	put(t, at("here/part-3/2"), []byte("was a directory"))
	if r := berth.Run("folder", "sync", "./here", "both:", "--delete", "--yes"); r.Code == 0 || !strings.Contains(r.Stderr, "1 path failed") {
		t.Errorf("a name that is not possible there: %+v", r)
	}
	remove(t, at("here/part-2/0/new\nline.txt"))
	berth.Must("folder", "sync", "./here", "both:", "--delete", "--yes")
	same("here")
	idle("./here", "both:")

	// The other direction, to a directory that has other content.
	fill(t, at("there"), 10, 1<<20)
	put(t, at("there/extra/file"), []byte("goes"))
	berth.Must("folder", "sync", "both:", "./there", "--delete", "--yes")
	same("there")
	idle("both:", "./there")
	berth.Must("folder", "delete", "--yes", "both")
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// flip changes the last byte of a file.
func flip(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	put(t, file, data)
}
