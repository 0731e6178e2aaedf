package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag that names a file or a directory has an absolute path, both by default and when an
// operator sets it.
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
				if named.MatchString(f.Usage) && f.Name != "fixture" { // --fixture usually takes a name
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
			t.Errorf("%s is not a path", name)
		}
	}
	if flag := upCommand().Flags().Lookup("data"); flag.DefValue != "var" {
		t.Errorf("help shows %s", flag.DefValue)
	}
}

func TestHelpPrintsNoSecret(t *testing.T) {
	for env := range map[string]string{"BERTHD_POSTGRES": "", "BERTHD_REDIS": "", "BERTHD_JOIN_TOKEN": "", "BERTHD_ETCD_PASSWORD": ""} {
		t.Setenv(env, "canary-of-"+env)
	}
	for _, role := range []string{"manager", "agent", "storage"} {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetArgs([]string{role, "--help"})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "canary") {
			t.Errorf("%s --help prints a secret of the environment:\n%s", role, out.String())
		}
	}
}

func TestSecretsComeFrom(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "postgres")
	if err := os.WriteFile(file, []byte("in the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args        []string
		env, creds  string
		want, fails string
	}{
		"nowhere":          {},
		"flag":             {args: []string{"--postgres", "a"}, env: "b", want: "a"},
		"file":             {args: []string{"--postgres-file", file}, env: "b", want: "in the file"},
		"environment":      {env: "b", creds: dir, want: "b"},
		"credential":       {creds: dir, want: "in the file"},
		"other credential": {creds: t.TempDir()},
		"both":             {args: []string{"--postgres", "a", "--postgres-file", file}, fails: "cannot be combined"},
		"empty file":       {args: []string{"--postgres-file", empty}, fails: "is empty"},
		"no file":          {args: []string{"--postgres-file", file + "x"}, fails: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("BERTHD_POSTGRES", c.env)
			t.Setenv("CREDENTIALS_DIRECTORY", c.creds)
			var s secret
			cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
			secretFlag(cmd, &s, "postgres", "BERTHD_POSTGRES", "PostgreSQL connection string")
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			got, err := s.read()
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
