package definition_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/manager/deployment/definition"
)

// A script does what the actions say, and no text becomes a command.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	file, bad := filepath.Join(dir, "a b", "f"), filepath.Join(dir, "bad")
	hostile := "it's $(touch " + bad + ") `touch " + bad + "`; touch " + bad + "\n%s\\n"
	script := definition.Script([]definition.Action{
		{Kind: definition.MakeDirectory, Path: filepath.Dir(file)},
		{Kind: definition.WriteFile, Path: file, Text: hostile, Mode: "600"},
		{Kind: definition.WriteFile, Path: file, Text: "end", Mode: "640", Append: true},
		{Kind: definition.RunCommand, Command: []string{"printf", "%s|", "a b", "$HOME", "';touch " + bad + "'"}},
		{Kind: definition.Log, Text: hostile},
	})
	out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
	if want := "a b|$HOME|';touch " + bad + "'|" + hostile + "\n"; err != nil || string(out) != want {
		t.Errorf("the script printed %q, %v; want %q", out, err, want)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != hostile+"end" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(bad); err == nil {
		t.Error("a text became a command")
	}
	failed := definition.Script([]definition.Action{{Kind: definition.RunCommand, Command: []string{"false"}}, {Kind: definition.Log, Text: "late"}})
	if out, err := exec.Command("/bin/sh", "-c", failed).CombinedOutput(); err == nil || strings.Contains(string(out), "late") {
		t.Errorf("after a failed action: %q, %v", out, err)
	}
	if definition.Script(nil) != "" {
		t.Error("no action has a script")
	}
}
