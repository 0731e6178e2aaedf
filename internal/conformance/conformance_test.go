package conformance

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/suite"
)

// toy is a suite whose plugins behave as their names say.
func toy(outcomes map[string]suite.Outcome) Suite {
	checks := []suite.Check{{Name: "speaks", Want: "it describes itself"}, {Name: "works", Want: "it works as described"}}
	environments := func(binary string) []Environment {
		return []Environment{{"one", func(_ context.Context, only []string, report func(suite.Result)) error {
			if binary == "missing" {
				return errors.New("there is none")
			}
			for _, c := range checks {
				if len(only) == 0 || slices.Contains(only, c.Name) {
					report(suite.Result{Check: c, Outcome: outcomes[binary+" "+c.Name], Detail: "it is\nlazy", Log: "a log\n"})
				}
			}
			return nil
		}}}
	}
	fs := flag.NewFlagSet("toy", flag.ContinueOnError)
	fs.String("config", "", "settings")
	return Suite{
		Usage: "Usage: toy\n", Flags: fs, Checks: checks,
		Environments: func(binary string, _ []string) ([]Environment, error) { return environments(binary), nil },
		Columns: func(dir string) (out []Column, err error) {
			names, err := Programs(dir)
			for _, n := range names {
				out = append(out, Column{n, environments(n)})
			}
			return out, err
		},
	}
}

func TestRun(t *testing.T) {
	outcomes := map[string]suite.Outcome{"good speaks": suite.Passed, "good works": suite.Skipped, "bad speaks": suite.Passed, "bad works": suite.Failed}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good": 0o755, "bad": 0o755, "README": 0o644, "liblimit.so": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		args []string
		code int
		want []string // in this order on standard output
	}{
		"kept":              {[]string{"good"}, 0, []string{"on one\npass  speaks               0.00s  it is; lazy\nskip  works", "1 passed, 0 failed, 1 skipped\n"}},
		"flag behind":       {[]string{"bad", "--only", "speaks"}, 0, []string{"1 passed, 0 failed, 0 skipped\n"}},
		"broken":            {[]string{"-v", "bad"}, 1, []string{"FAIL  works", "want: it works as described", "a log", "1 passed, 1 failed, 0 skipped\n"}},
		"not run":           {[]string{"missing"}, 2, nil},
		"nothing":           {nil, 2, nil},
		"two":               {[]string{"good", "bad"}, 2, nil},
		"unknown flag":      {[]string{"--nonsense", "good"}, 2, nil},
		"list":              {[]string{"--list"}, 0, []string{"speaks             it describes itself\n", "works"}},
		"table":             {[]string{"--plugins", dir}, 1, []string{"bad               1 passed, 1 failed, 0 skipped     0 s  one\n", " bad good\n", "speaks               ok   ok\n", "works              FAIL    -\n", "FAIL bad on one: works: it is\nlazy\n2 passed, 1 failed, 1 skipped\n"}},
		"table of a plugin": {[]string{"--plugins", dir, "--only", "speaks"}, 0, []string{"2 passed, 0 failed, 0 skipped\n"}},
		"table and plugin":  {[]string{"--plugins", dir, "good"}, 2, nil},
		"table, settings":   {[]string{"--plugins", dir, "--config", "{}"}, 2, nil},
		"empty table":       {[]string{"--plugins", t.TempDir()}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Run(t.Context(), toy(outcomes), row.args, &out, &errs); code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			if row.code == 2 && errs.Len() == 0 {
				t.Error("no reason is printed")
			}
			rest := out.String()
			for _, want := range row.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("no %q in\n%s%s", want, &out, &errs)
				}
				rest = after
			}
		})
	}
}

func TestObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("# of a volume\nuser: root\nfs: [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = `{"fs":[1,2],"user":"root"}`
	for _, flag := range []string{`{"user":"root","fs":[1,2]}`, "{user: root, fs: [1, 2]}", file} {
		if raw, err := Object(flag); string(raw) != want || err != nil {
			t.Errorf("%s: %q, %v", flag, raw, err)
		}
	}
	if raw, err := Object(""); len(raw) != 0 || err != nil {
		t.Errorf("nothing: %q, %v", raw, err)
	}
	if raw, err := Object("{}"); string(raw) != "{}" || err != nil {
		t.Errorf("an empty object: %q, %v", raw, err)
	}
	list := file + "2"
	if err := os.WriteFile(list, []byte("- user\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{file + "3", list, "{user: "} {
		if _, err := Object(flag); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}
