package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root of the repository: the nearest directory with a go.mod, from the
// package's directory upward, in which go test starts a test.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory: run the test in the repository")
		}
		dir = up
	}
}

// Bin returns the path of a program that make build put into bin/, for example "runc".
func Bin(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (run make build)", err)
	}
	return path
}
