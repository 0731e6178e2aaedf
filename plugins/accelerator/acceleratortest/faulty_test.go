package acceleratortest_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
	"github.com/berthhq/berth/plugins/suite"
)

// TestBrokenPromisesAreCaught runs a plugin that violates one requirement at a time. Only the check
// of that requirement, and checks that depend on it, may fail.
func TestBrokenPromisesAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("runs plugins")
	}
	faulty := filepath.Join(t.TempDir(), "faulty")
	if out, err := exec.Command("go", "build", "-o", faulty, "./testdata/faulty").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	plugin := func(fault string) acceleratortest.Plugin {
		return acceleratortest.Plugin{Path: faulty, Fixture: "testdata/faulty", Env: []string{"FAULT=" + fault}}
	}
	t.Run("none", func(t *testing.T) { acceleratortest.Test(t, plugin("")) })
	type caught struct {
		fault  string
		result suite.Result
		err    error
	}
	results := make(chan caught)
	faults := map[string]string{
		"undescribed slot":                 "display",
		"refuses its default":              "config-schema",
		"overlooks a card":                 "expected",
		"counters that let halves overlap": "parts",
		"halves that are more than all":    "unified",
		"refuses bytes beside shares":      "unified",
		"hands out a neighbour's node":     "edits-apart",
		"mounts etc":                       "edits-roots",
		"does not undo":                    "kill",
		"does not sweep":                   "restore-none",
		"charges more than there is":       "workload-metrics",
		"scans only once":                  "unplug",
		"reports failed cards as healthy":  "sick",
		"gives up at one broken file":      "garbage",
		"crashes at one broken file":       "garbage",
		"waits for its program":            "program-hangs",
		"leaves processes behind":          "program-hangs",
		"crashes when its program fails":   "program-fails",
	}
	for fault, check := range faults { // concurrently, because they mostly wait
		go func() {
			c := caught{fault: fault}
			c.err = acceleratortest.Run(t.Context(), plugin(fault), []string{check}, func(r suite.Result) { c.result = r })
			results <- c
		}()
	}
	for range faults {
		switch c := <-results; {
		case c.err != nil:
			t.Errorf("%s: %v", c.fault, c.err)
		case c.result.Outcome != suite.Failed || c.result.Detail == "":
			t.Errorf("%s: %s: %s (%s), want a failure", c.fault, faults[c.fault], c.result.Outcome, c.result.Detail)
		}
	}
}
