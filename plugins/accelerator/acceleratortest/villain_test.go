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
	villain := filepath.Join(t.TempDir(), "villain")
	if out, err := exec.Command("go", "build", "-o", villain, "./testdata/villain").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	plugin := func(deed string) acceleratortest.Plugin {
		return acceleratortest.Plugin{Path: villain, Fixture: "testdata/villain", Env: []string{"VILLAIN=" + deed}}
	}
	t.Run("none", func(t *testing.T) { acceleratortest.Test(t, plugin("")) })
	type caught struct {
		deed   string
		result suite.Result
		err    error
	}
	results := make(chan caught)
	deeds := map[string]string{
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
		"never looks again":                "unplug",
		"hides what is ill":                "sick",
		"gives up at one broken file":      "garbage",
		"crashes at one broken file":       "garbage",
		"waits for its program":            "program-hangs",
		"leaves processes behind":          "program-hangs",
		"crashes when its program fails":   "program-fails",
	}
	for deed, check := range deeds { // concurrently, because they mostly wait
		go func() {
			c := caught{deed: deed}
			c.err = acceleratortest.Run(t.Context(), plugin(deed), []string{check}, func(r suite.Result) { c.result = r })
			results <- c
		}()
	}
	for range deeds {
		switch c := <-results; {
		case c.err != nil:
			t.Errorf("%s: %v", c.deed, c.err)
		case c.result.Outcome != suite.Failed || c.result.Detail == "":
			t.Errorf("%s: %s: %s (%s), want a failure", c.deed, deeds[c.deed], c.result.Outcome, c.result.Detail)
		}
	}
}
