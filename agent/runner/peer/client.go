package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// included matches the line of a system's configuration that includes the directory of Config.
var included = regexp.MustCompile(`(?im)^[ \t]*include[ \t=]+.*ssh_config\.d/\*`)

// Connect makes sure that OpenSSH's client reads the configuration of the session. If the image's
// /etc/ssh/ssh_config does not include the directory of Config, or is missing, it adds an include
// line to the user's own file. home is the home directory in /etc/passwd, which is where the client
// looks.
func Connect(system, home string) error {
	text, err := os.ReadFile(system)
	if err == nil && included.Match(text) {
		return nil
	}
	path := filepath.Join(home, ".ssh", "config")
	line := "Include " + filepath.Join(Dir, sshConfig) + "\n"
	own, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("SSH to the other kernels: %w", err)
	}
	if strings.Contains("\n"+string(own), "\n"+line) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("SSH to the other kernels: %w", err)
	}
	next := path + ".berth"
	if err := os.WriteFile(next, []byte(line+string(own)), 0o600); err != nil {
		return fmt.Errorf("SSH to the other kernels: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("SSH to the other kernels: %w", err)
	}
	return nil
}
