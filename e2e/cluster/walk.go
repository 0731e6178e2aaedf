package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Walk runs a script of web/e2e in a real browser, as this user, with more variables
// in its environment. Where there is no browser the test is skipped.
func (u *User) Walk(script string, env ...string) {
	u.t.Helper()
	root, err := repository()
	if err != nil {
		u.t.Fatal(err)
	}
	web := filepath.Join(root, "web")
	node, err := exec.LookPath("node")
	if err != nil {
		u.t.Skip("no node on this machine")
	}
	for _, needed := range []string{"/usr/bin/chromium", filepath.Join(web, "node_modules/playwright-core")} {
		if _, err := os.Stat(needed); err != nil {
			u.t.Skipf("no browser: %v (run make setup web)", err)
		}
	}
	cmd := exec.CommandContext(u.t.Context(), node, "--import", "./e2e/typescript.mjs", "e2e/"+script+".ts")
	cmd.Dir = web
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(append(os.Environ(), "BERTH_URL="+u.p.URL, "BERTH_EMAIL="+u.Email, "BERTH_PASSWORD="+u.Password), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Errorf("walk: %v\n%s", err, out)
	}
	u.t.Logf("%s", out)
}
