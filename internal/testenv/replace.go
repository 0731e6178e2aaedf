package testenv

import (
	"os"
	"testing"
)

// Replace replaces the text of a file that another process reads: the reader finds the old text or
// the new one, and never a part.
func Replace(t testing.TB, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}
