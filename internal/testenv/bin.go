package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Root is the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		t.Fatal("the repository's root is unknown: built with -trimpath?")
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Bin is the path of a program that make build put into bin/, for example "runc".
func Bin(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (run make build)", err)
	}
	return path
}
