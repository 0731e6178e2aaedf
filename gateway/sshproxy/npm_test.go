package sshproxy

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Microsoft's client of dev tunnels does not support Ed25519, and sends the token as the password.
func TestDevTunnels(t *testing.T) {
	const dir = "../../agent/runner/sshd/testdata/node/"
	if _, err := os.Stat(dir + "node_modules"); err != nil {
		t.Skip("its packages are missing; make test-go installs them")
	}
	w := newWorld(t)
	_, port, _ := net.SplitHostPort(w.address)
	for token, want := range map[string]int{"secret": 7, "guess": 1} {
		cmd := exec.Command("node", dir+"devtunnels.mjs", port, w.known, "train", token, "cat; echo error >&2; exit 7")
		cmd.Stdin = strings.NewReader("input\n")
		var errors strings.Builder
		cmd.Stderr = &errors
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != want || want == 7 && (string(out) != "input\n" || errors.String() != "error\n") {
			t.Errorf("with the token %q: exit code %d, %q, %q", token, code, out, errors.String())
		}
	}
}
