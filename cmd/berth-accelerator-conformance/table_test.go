package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// TestEveryPlugin is what make conformance does: every plugin of the tree keeps
// the contract on every machine made for it.
func TestEveryPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "github.com/berthhq/berth/plugins/accelerator/...").CombinedOutput(); err != nil {
		t.Fatalf("build plugins: %v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	if code := table(t.Context(), dir, nil, &out, &errs); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	t.Log("\n" + out.String())
}

func TestTable(t *testing.T) {
	c := func(plugin string, r ...acceleratortest.Result) *column {
		c := &column{plugin: plugin, machines: []string{"one"}, sums: map[acceleratortest.Outcome]int{}, cells: map[string]acceleratortest.Outcome{}}
		for _, r := range r {
			c.add("one", r)
		}
		return c
	}
	check := acceleratortest.Checks()[0]
	result := func(o acceleratortest.Outcome, why string) acceleratortest.Result {
		return acceleratortest.Result{Check: check, Outcome: o, Detail: why}
	}
	pass, fail, skip := result(acceleratortest.Passed, ""), result(acceleratortest.Failed, "it is lazy"), result(acceleratortest.Skipped, "")
	var out bytes.Buffer
	draw(&out, []*column{c("good", skip, pass, skip), c("bad", pass, fail, pass), c("idle", skip)})
	lines := strings.Split(out.String(), "\n")
	if got := strings.Join(strings.Fields(lines[1]), " "); got != check.Name+" ok FAIL -" {
		t.Errorf("row %q", got)
	}
	for _, want := range []string{"FAIL bad on one: " + check.Name + ": it is lazy", "3 passed, 1 failed, 3 skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
}

// A machine whose plugin is not there would silently not be tried.
func TestMachineWithoutPlugin(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"other": 0o755, "template": 0o755, "README": 0o644, "liblimit.so": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	columns, err := plan(dir)
	if err == nil || !strings.Contains(err.Error(), "mock-4") {
		t.Errorf("got %v", err)
	}
	if len(columns) != 1 || columns[0].plugin != "other" {
		t.Errorf("got %v", columns)
	}
}
