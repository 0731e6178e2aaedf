package volumetest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

var dir string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // skip tests that would build programs
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if dir, err = os.MkdirTemp("", "volumetest"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if out, err := exec.Command("go", "build", "-o", dir+"/", "../vfs", "../template", "./testdata/faulty").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build plugins: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func TestVFS(t *testing.T) {
	volumetest.Test(t, volumetest.Plugin{Path: filepath.Join(dir, "vfs"), Options: `{"usage_max_age_s": 0}`})
}

// TestTemplate checks that the template for vendors passes the suite.
func TestTemplate(t *testing.T) {
	volumetest.Test(t, volumetest.Plugin{Path: filepath.Join(dir, "template"), Options: `{"usage_max_age": "0s"}`})
}

// faulty returns a plugin with one fault.
func faulty(t *testing.T, fault string) volumetest.Plugin {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("correct horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	return volumetest.Plugin{Path: filepath.Join(dir, "faulty"), Env: []string{"FAULT=" + fault}, Options: `{"password_file": "` + secret + `"}`,
		Environment: volumetest.Environment{Timeout: 3 * time.Second}}
}

func TestWithoutFault(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	err := volumetest.Run(t.Context(), faulty(t, ""), nil, func(r suite.Result) {
		if r.Outcome == suite.Failed {
			t.Errorf("%s: %s\n%s", r.Check.Name, r.Detail, r.Log)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFaultsAreCaught proves that the suite can fail.
func TestFaultsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	for fault, only := range map[string][]string{
		"prints":                         {"stdout"},
		"serves anyone":                  {"cookie"},
		"changes":                        {"describe"},
		"takes anything":                 {"schema"},
		"ignores options":                {"options-unknown", "options-types", "options-bounds", "options-garbage", "options-kept"},
		"names no option":                {"options-unknown", "options-types", "options-bounds"},
		"logs its secret":                {"secrets"},
		"no scopes":                      {"open"},
		"no enforcement":                 {"open"},
		"hides what it has":              {"unimplemented"},
		"half the disk":                  {"capacity"},
		"counts":                         {"performance"},
		"writes to the bare mount point": {"unmounted", "other-mount"},
		"private scopes":                 {"scope-mode"},
		"one at a time":                  {"scope-idempotent", "scope-concurrent"},
		"resets limits":                  {"scope-idempotent"},
		"takes any name":                 {"scope-names"},
		"deletes what is full":           {"scope-not-empty"},
		"keeps limits of deleted scopes": {"scope-recreated"},
		"lists one twice":                {"scope-list"},
		"lists one less":                 {"scope-list"},
		"zero is none":                   {"limit"},
		"drops the first limit":          {"limit-initial", "scope-concurrent", "kill-midway"},
		"follows links":                  {"usage-links"},
		"apparent sizes":                 {"usage", "usage-names"},
		"no age":                         {"usage"},
		"guesses trees":                  {"usage-tree"},
		"clones what links lead to":      {"clone"},
		"clones onto what exists":        {"clone-exists"},
		"leaves what is cancelled":       {"clone-cancel"},
		"clones by second names":         {"clone-apart"},
		"does not delete":                {"delete"},
		"sends secrets to nodes":         {"mount-plan"},
		"reports enforcement wrongly":    {"effect-bytes", "effect-raise", "effect-zero", "effect-free", "effect-lower", "effect-usage"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			err := volumetest.Run(t.Context(), faulty(t, fault), only, func(r suite.Result) {
				if r.Outcome != suite.Failed || r.Detail == "" {
					t.Errorf("%s: %s (%s), want a failure", r.Check.Name, r.Outcome, r.Detail)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy must not count as a clone on a file system whose files can share blocks. This requires a
// separate disk.
func TestCopyIsNoClone(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	p := faulty(t, "")
	p.Mount = t.TempDir()
	if err := unix.Mount("faulty", p.Mount, "tmpfs", 0, "size=256m"); err != nil {
		t.Skip("cannot mount:", err)
	}
	defer func() {
		if err := unix.Unmount(p.Mount, 0); err != nil {
			t.Error(err)
		}
	}()
	err := volumetest.Run(t.Context(), p, []string{"clone-shares"}, func(r suite.Result) {
		if r.Outcome != suite.Failed {
			t.Errorf("%s (%s)", r.Outcome, r.Detail)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestUnknownCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	if err := volumetest.Run(t.Context(), faulty(t, ""), []string{"nonsense"}, func(suite.Result) {}); err == nil {
		t.Error("a check that does not exist was run")
	}
}

func TestChecksAreDocumented(t *testing.T) {
	var names []string
	for _, c := range volumetest.Checks() {
		if c.Name == "" || c.Want == "" || slices.Contains(names, c.Name) {
			t.Errorf("check %q has no text or a name used twice", c.Name)
		}
		names = append(names, c.Name)
	}
}
