package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Users visit the pages in a real browser.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	admin := platform.Admin(t)
	platform.Watch(t)
	for _, walk := range []struct{ name, script string }{
		{"a user's actions", "walk"},
		{"login and account", "account"},
		{"users, for an administrator", "people"},
		{"policies, for an administrator", "rules"},
		{"the scheduler", "scheduler"},
		{"prices and budgets", "money"},
		{"taken names, limits, unsaved changes", "folders"},
		{"the files of a session", "files"},
		{"templates, clones, restarts and arrays", "sessions"},
		{"images of sessions and registries", "images"},
		{"models that are served", "serving"},
		{"chats", "chat"},
		{"notices", "notices"},
	} {
		t.Run(walk.name, func(t *testing.T) {
			secrets := filepath.Join(t.TempDir(), "secrets")
			admin.In(t).Walk(walk.script, "BERTH_SECRETS="+secrets)
			learn(t, secrets)
		})
	}
}

// learn reads the secrets that a browser test has seen. Each line has a description and a value.
func learn(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var s [2]string
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		platform.Secret(s[0], s[1])
	}
}
