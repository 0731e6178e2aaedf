// Package syntax checks the fields of requests for sessions that refer to no rows.
package syntax

import (
	"fmt"
	"path"
	"strings"

	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
)

const (
	minName = 1
	// MaxName limits the length of a session's name.
	MaxName        = 64
	maxEnvironment = 64 << 10 // bytes
	// MaxCommand limits the bytes of a command, and those of all apps.
	MaxCommand = 128 << 10
)

// Name checks the name of a session, or of an object with the same rules for names.
func Name(name string) error {
	if len(name) < minName || len(name) > MaxName {
		return problem.Invalid("name", "must have %d to %d characters", minName, MaxName).
			WithLimit(fmt.Sprintf("%d..%d", minName, MaxName))
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && (i == 0 || c != '-' && c != '_' && c != '.') {
			return problem.Invalid("name", "may contain letters, digits and, after the first character, dots, dashes and underscores")
		}
	}
	return nil
}

// reserved are mount targets that would break the container.
var reserved = []string{"/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/usr", "/opt/berth", "/run", "/boot"}

// Target checks the path of a mount in a session.
func Target(field, target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || strings.ContainsAny(target, "\x00\n") || len(target) > 1024 {
		return problem.Invalid(field, "must be a clean absolute path below /")
	}
	for _, r := range reserved {
		if target == r || strings.HasPrefix(target, r+"/") {
			return problem.Invalid(field, "%s is reserved for the system", r)
		}
	}
	if target == "/home/work" {
		return problem.Invalid(field, "/home/work is the home directory of the session; choose a path below it")
	}
	return nil
}

// Environment checks the variables of a session.
func Environment(environment map[string]string) error {
	total := 0
	for k, val := range environment {
		total += len(k) + len(val) + 2
		if !naming.IsVariable(k) || strings.ContainsRune(val, 0) {
			return problem.Invalid("environment", "%q cannot be an environment variable", k)
		}
		if strings.HasPrefix(k, "BERTH_") {
			return problem.Invalid("environment", "%s: names that begin with BERTH_ are set by the platform", k)
		}
	}
	if total > maxEnvironment {
		return problem.Invalid("environment", "has %d bytes", total).WithLimit(fmt.Sprint(maxEnvironment))
	}
	return nil
}

// Bytes returns the size of a command with a zero byte after each argument.
func Bytes(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}
