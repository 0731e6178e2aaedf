package ssh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// TestCopy runs the scp of this machine in both directions.
func TestCopy(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	here := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(here, "a b.txt"), "one")
	put(filepath.Join(here, "-c"), "two")
	put(filepath.Join(here, "with:colon"), "three")
	put(filepath.Join(here, "tree/deep/d.txt"), "four")
	cp := func(args ...string) {
		t.Helper()
		cmd := berth(t, f, home, append([]string{"cp"}, args...)...)
		cmd.Dir = here
		if r := result(t, cmd, ""); r.Code != 0 || r.Errors != "" {
			t.Fatalf("%q: %+v", args, r)
		}
	}
	cp("-r", "--", "a b.txt", "-c", "./with:colon", "tree", "train:")
	if err := os.Mkdir(filepath.Join(here, "back"), 0o700); err != nil {
		t.Fatal(err)
	}
	cp("train:a b.txt", "train:tree/deep/*.txt", "back")
	for path, want := range map[string]string{
		filepath.Join(g.dir, "a b.txt"):         "one",
		filepath.Join(g.dir, "-c"):              "two",
		filepath.Join(g.dir, "with:colon"):      "three",
		filepath.Join(g.dir, "tree/deep/d.txt"): "four",
		filepath.Join(here, "back/a b.txt"):     "one",
		filepath.Join(here, "back/d.txt"):       "four",
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	users := g.seen() // scp connects for each source
	if slices.Sort(users); !slices.Equal(slices.Compact(users), []string{idTrain}) {
		t.Errorf("logged in as %q", users)
	}
}

func TestCopyHasOneSideInASession(t *testing.T) {
	f := newServer(t)
	for line, want := range map[string]string{
		"cp a b":               "no path is in a session",
		"cp a/b:c d":           "no path is in a session",
		"cp train:a other:b":   "both in a session",
		"cp train:a other:b .": "not in the same place",
		"cp a train:b .":       "not in the same place",
		"cp train:a":           "usage: berth cp",
	} {
		if r := f.Run(strings.Fields(line)...); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
