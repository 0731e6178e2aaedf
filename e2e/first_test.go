package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A user has started the platform and follows the instructions that it printed.
func TestFirstRun(t *testing.T) {
	admin := platform.Admin(t)
	platform.Watch(t)
	printed := regexp.MustCompile(`(?s)Berth is at (\S+).*First superadmin: (\S+)\s+Password: +in (\S+)`).FindStringSubmatch(platform.Log())
	if printed == nil {
		t.Fatalf("nothing to log in with was printed:\n%s", platform.Log())
	}
	url, email, file := printed[1], printed[2], printed[3]
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%s: %v, %v; only root may read it", file, info, err)
	}
	var first struct{ Password string }
	if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, &first) != nil || first.Password == "" {
		t.Fatalf("%s has no password: %v", file, err)
	}
	password := first.Password
	if strings.Contains(platform.Log(), password) {
		t.Error("the output of a service contains the password")
	}

	berth := admin.Shell()
	berth.Forget("BERTH_URL", "BERTH_TOKEN")
	if r := berth.RunWith(password+"\n", "login", url, "--email", email, "--password-stdin"); r.Code != 0 || !strings.Contains(r.Stderr, "first password") {
		t.Fatalf("login: %+v", r)
	}
	config := filepath.Join(berth.Dir, "config.yaml")
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("the stored token: %v, %v; only its owner may read it", info, err)
	}
	text, err := os.ReadFile(config)
	if err != nil || strings.Contains(string(text), password) {
		t.Errorf("the password is kept in a file (%v)", err)
	}

	if r := berth.Run("run", "minimal:1", "--cpu", "0.1", "--mem", "64m", "--", "echo", "hello"); r.Code != 0 || r.Stdout != "hello\n" {
		t.Errorf("run: %+v", r)
	}
	if r := berth.Run("run", "-q", "minimal:1", "--cpu", "0.1", "--mem", "64m", "--", "sh", "-c", "exit 7"); r.Code != 7 || r.Stdout != "" {
		t.Errorf("run that exits with 7: %+v", r)
	}
	if r := berth.Run("logout"); r.Code != 0 {
		t.Errorf("logout: %+v", r)
	}
	if r := berth.Run("whoami"); r.Code != 4 {
		t.Errorf("whoami after logout: %+v, want 4", r)
	}
}

// The output of a command is shown while it runs.
func TestOutputIsStreamed(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	folder := berth.Must("folder", "create", "gate", "-o", "json")
	if !strings.Contains(folder, `"gate"`) {
		t.Fatalf("folder create: %s", folder)
	}
	cmd := berth.Command("run", "-q", "minimal:1", "--cpu", "0.1", "--mem", "64m", "-v", "gate", "--",
		"sh", "-c", "echo first; until [ -e gate/open ]; do sleep 0.1; done; echo second")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); line != "first" {
		t.Errorf("first line is %q", line)
	}
	// The session waits for this file, so the output was shown before the session ended.
	file := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	berth.Must("folder", "put", "gate", file)
	if line := readLine(t, out); line != "second" {
		t.Errorf("second line is %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("run: %v", err)
	}
}
