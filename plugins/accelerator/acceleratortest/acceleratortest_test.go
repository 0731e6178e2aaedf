package acceleratortest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
	"github.com/berthhq/berth/plugins/suite"
)

var dir string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // skip tests that would build programs
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if dir, err = os.MkdirTemp("", "acceleratortest"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		cmd := exec.Command("go", "build", "-o", dir+"/", "../mock", "../nvidia", "../template")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build plugins: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func TestMock(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "mock")})
}

func TestMockMachine(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "mock"), Config: []byte(
		`{"devices": 16, "links": "full", "device_nodes": true, "quantum": "0.1",
		  "faults": {"unhealthy": "gpu-3 unhealthy too hot\ngpu-4 degraded slow", "unplug": "7"}}`)})
}

func TestMockWithoutDevices(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "mock"), Config: []byte(`{"devices": 0}`)})
}

// On a machine without a driver, the plugin for NVIDIA must behave like any other plugin: it shows
// no devices and reports no error.
func TestNvidia(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "nvidia")})
}

func TestTemplate(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "template")})
}

// This runs the template's plugin on a machine with cards of its fictional vendor, which checks
// remove and corrupt.
func TestTemplateWithCards(t *testing.T) {
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(dir, "template"), Fixture: "testdata/acme-3"})
}

// TestMisdeedsAreCaught proves that the suite can fail: the checks find each fault of the mock.
func TestMisdeedsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	for name, tc := range map[string]struct {
		config string
		env    string // content of a fault file that is present from the start: name=text
		only   []string
	}{
		"negative capacity": {config: `{"faults":{"lie":"negative"}}`, only: []string{"snapshot", "stable", "prepare"}},
		"not a number":      {config: `{"faults":{"lie":"nan"}}`, only: []string{"snapshot"}},
		"duplicate ids":     {config: `{"faults":{"lie":"duplicate"}}`, only: []string{"snapshot", "health"}},
		"million devices":   {config: `{"faults":{"lie":"million"}}`, only: []string{"snapshot"}},
		"foreign slots":     {config: `{"faults":{"lie":"foreign"}}`, only: []string{"snapshot"}},
		"crash in prepare":  {config: `{"faults":{"crash":"always"}}`, only: []string{"prepare", "unprepare"}},
		"crash at load":     {env: "crash=always", only: []string{"describe", "snapshot", "sigterm"}},
		"hang in watch":     {config: `{"faults":{"hang":"WatchDevices"}}`, only: []string{"snapshot"}},
		"hang in metrics":   {config: `{"faults":{"hang":"WatchNodeMetrics"}}`, only: []string{"node-metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := acceleratortest.Plugin{Path: filepath.Join(dir, "mock"), Config: []byte(tc.config)}
			if tc.env != "" {
				faults := t.TempDir()
				if err := os.WriteFile(filepath.Join(faults, "crash"), []byte("always"), 0o600); err != nil {
					t.Fatal(err)
				}
				p.Env = []string{"BERTH_MOCK_FAULTS=" + faults}
			}
			err := acceleratortest.Run(t.Context(), p, tc.only, func(r suite.Result) {
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

func TestUnknownCheck(t *testing.T) {
	p := acceleratortest.Plugin{Path: filepath.Join(dir, "mock")}
	if err := acceleratortest.Run(t.Context(), p, []string{"nonsense"}, func(suite.Result) {}); err == nil {
		t.Error("a check that does not exist was run")
	}
}

func TestChecksAreDocumented(t *testing.T) {
	var names []string
	for _, c := range acceleratortest.Checks() {
		if c.Name == "" || c.Want == "" || slices.Contains(names, c.Name) {
			t.Errorf("check %q has no text or a name used twice", c.Name)
		}
		names = append(names, c.Name)
	}
}
