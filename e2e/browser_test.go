package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// A person walks through the page, in a real browser.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
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
	cmd := exec.CommandContext(t.Context(), node, "e2e/walk.mjs")
	cmd.Dir = "../web"
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "BERTH_URL="+platform.URL, "BERTH_EMAIL="+admin.Email, "BERTH_PASSWORD="+admin.Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("walk: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
