package main

import "testing"

func TestKernels(t *testing.T) {
	for release, want := range map[string]bool{
		"4.16.18": false, "4.17.0": true, "4.9-arch": false, "3.10.0-1160.el7.x86_64": false, "6.1.0-18-amd64": true, "5.4": true, "": true,
	} {
		if got := keeps(release); got != want {
			t.Errorf("Linux %s keeps quotas: %v", release, got)
		}
	}
}
