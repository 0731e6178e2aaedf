package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag that names a file or a directory is absolute, as it is by default and as
// it is given.
func TestPathsAreAbsolute(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	named := regexp.MustCompile(`(?i)\b(directory|file|layouts)\b`)
	seen := map[string]bool{}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := cmd.Name() + " --" + f.Name
			if f.Value.Type() != "path" {
				if named.MatchString(f.Usage) && f.Name != "fixture" { // a name, mostly
					t.Errorf("%s (%s) may be relative", name, f.Usage)
				}
				return
			}
			seen[name] = true
			if v := f.Value.String(); v != "" && !filepath.IsAbs(v) {
				t.Errorf("%s is %s by default", name, v)
			}
			for given, want := range map[string]string{"bin": filepath.Join(here, "bin"), "../x/": filepath.Join(filepath.Dir(here), "x"), "/a//b": "/a/b", "": ""} {
				if err := f.Value.Set(given); err != nil || f.Value.String() != want {
					t.Errorf("%s %q is %s, %v; want %s", name, given, f.Value, err, want)
				}
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(root())
	for _, name := range []string{"up --bin", "up --data", "agent --bin", "agent --plugin-file", "storage --data", "manager --secrets", "rotate-keys --data", "rotate-ticket-key --data", "hang --data"} {
		if !seen[name] {
			t.Errorf("%s is no path", name)
		}
	}
	if flag := upCommand().Flags().Lookup("data"); flag.DefValue != "var" {
		t.Errorf("help says %s", flag.DefValue)
	}
}
