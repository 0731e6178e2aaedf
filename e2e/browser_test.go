package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// People walk through the pages, in a real browser.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on this machine")
	}
	for _, needed := range []string{"/usr/bin/chromium", "../web/node_modules/playwright-core"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("no browser: %v (run make setup web)", err)
		}
	}
	admin := platform.Admin(t)
	platform.Watch(t)
	for _, walk := range []struct{ name, script string }{
		{"what a user does", "walk"},
		{"the door and the account", "account"},
		{"an administrator's people", "people"},
		{"an administrator's rules", "rules"},
		{"what the scheduler shows", "scheduler"},
	} {
		t.Run(walk.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, "e2e/"+walk.script+".mjs")
			cmd.Dir = "../web"
			cmd.WaitDelay = 10 * time.Second
			cmd.Env = append(os.Environ(), "BERTH_URL="+platform.URL, "BERTH_EMAIL="+admin.Email, "BERTH_PASSWORD="+admin.Password)
			secrets := filepath.Join(t.TempDir(), "secrets")
			cmd.Env = append(cmd.Env, "BERTH_SECRETS="+secrets)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("walk: %v\n%s", err, out)
			}
			t.Logf("%s", out)
			learn(t, secrets)
		})
	}
}

// learn reads the secrets that a walk has seen, a line of what and value each.
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
