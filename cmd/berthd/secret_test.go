package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
		"both":             {args: []string{"--postgres", "a", "--postgres-file", file}, fails: "exclude each other"},
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
