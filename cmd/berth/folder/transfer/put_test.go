package transfer

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, f := range []string{"a.csv", "runs/1/x", "runs/2/x", "other/a.csv"} {
		_ = os.MkdirAll(filepath.Dir(f), 0o755)
		if err := os.WriteFile(f, []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.MkdirAll("runs/empty", 0o755)
	_ = os.Symlink("../a.csv", "runs/link")
	_ = os.Symlink("nowhere", "runs/dangling")
	_ = os.Symlink("..", "runs/loop")
	f := newServer(t)
	for name, c := range map[string]struct {
		sources []string
		dir     string
		want    []string
		fails   string
	}{
		"file":                 {sources: []string{"a.csv"}, want: []string{"a.csv"}},
		"file into a place":    {sources: []string{dir + "/a.csv"}, dir: "in/to", want: []string{"in/to/a.csv"}},
		"directory":            {sources: []string{"runs"}, want: []string{"runs/", "runs/1/", "runs/1/x", "runs/2/", "runs/2/x", "runs/empty/"}},
		"its contents":         {sources: []string{"runs/1/."}, want: []string{"x"}},
		"slash at the end":     {sources: []string{"runs/1/"}, dir: "d", want: []string{"d/1/", "d/1/x"}},
		"same name twice":      {sources: []string{"a.csv", "other/a.csv"}, fails: "would both become a.csv"},
		"not there":            {sources: []string{"b.csv"}, fails: "does not exist here"},
		"neither file nor dir": {sources: []string{"/dev/null"}, fails: "neither a file"},
	} {
		t.Run(name, func(t *testing.T) {
			a := cli.New(nil, io.Discard, io.Discard, func(string) string { return "" })
			p, err := planned(a, c.sources, c.dir)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			var got []string
			for _, s := range p.steps {
				if s.Action == makeDir {
					s.Path += "/"
				}
				got = append(got, s.Path)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
	if r := f.Run("folder", "put", "data", ":to"); r.Code != cli.ExitUsage {
		t.Errorf("no source: %+v", r)
	}
}

func TestResumeNote(t *testing.T) {
	cache := t.TempDir()
	a := cli.New(nil, nil, nil, func(k string) string { return map[string]string{"XDG_CACHE_HOME": cache}[k] })
	it := &step{Local: "x", Path: "y", Size: 3, modified: time.Unix(1, 0)}
	n := newResumeNote(a, "http://s", "f", it)
	n.Write("http://s/uploads/1")
	if got := newResumeNote(a, "http://s", "f", it).Read(); got != "http://s/uploads/1" {
		t.Errorf("got %q", got)
	}
	it.modified = time.Unix(2, 0)
	if got := newResumeNote(a, "http://s", "f", it).Read(); got != "" {
		t.Errorf("a changed file continues with %q", got)
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(n.path, old, old); err != nil {
		t.Fatal(err)
	}
	if got := n.Read(); got != "" {
		t.Errorf("after a day: %q", got)
	}
}
