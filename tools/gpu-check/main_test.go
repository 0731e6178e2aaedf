package main

import (
	"os/exec"
	"testing"
)

// Without a card, the script prints the reason and does not fail.
func TestNoCard(t *testing.T) {
	cmd := exec.Command("/bin/bash", "../gpu-check.sh")
	cmd.Env = []string{"PATH=/nonexistent"}
	out, err := cmd.CombinedOutput()
	if want := "gpu-check: there is no NVIDIA GPU on this machine: nothing was verified.\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v", out, err)
	}
}
