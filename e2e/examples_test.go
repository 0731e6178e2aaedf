package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// The example programs of docs/api.md create a session, wait for it and print its log.
func TestExamplesRun(t *testing.T) {
	for name, program := range map[string][]string{
		"go":         {"go", "run", "./examples/go"},
		"python":     {"/usr/bin/python3", "examples/python/run_batch.py"},
		"javascript": {"node", "examples/typescript/run-batch.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			u := platform.User(t)
			cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "minimal:1", "sh", "-c", "echo hello from $HOSTNAME")...)
			cmd.Dir = "../docs"
			cmd.Env = append(os.Environ(), "BERTH_URL="+platform.URL, "BERTH_TOKEN="+u.Token)
			var errors bytes.Buffer
			cmd.Stderr = &errors
			out, err := cmd.Output()
			if err != nil || string(out) != "hello from main\n" {
				t.Fatalf("printed %q: %v\n%s", out, err, errors.String())
			}
		})
	}
}
