package e2e

import (
	"os"
	"os/exec"
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
	} {
		t.Run(walk.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, "e2e/"+walk.script+".mjs")
			cmd.Dir = "../web"
			cmd.WaitDelay = 10 * time.Second
			cmd.Env = append(os.Environ(), "BERTH_URL="+platform.URL, "BERTH_EMAIL="+admin.Email, "BERTH_PASSWORD="+admin.Password)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("walk: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
