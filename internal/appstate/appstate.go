// Package appstate has the messages about apps that a manager or gateway exchanges with the
// runner in a container, as JSON on the standard input and output of its commands.
package appstate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Runner is the path of the runner in every container.
const Runner = "/opt/berth/runner"

// App is an app that a session was created with.
type App struct {
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Port        int               `json:"port"`
	Command     []string          `json:"command,omitempty"` // empty: it is started by other means
	Environment map[string]string `json:"environment,omitempty"`
}

// Spec describes how an app is started.
type Spec struct {
	Name        string            `json:"name"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment,omitempty"`
}

// State is what the runner knows about an app that was started. Ended is zero while it runs.
type State struct {
	Name    string    `json:"name"`
	Running bool      `json:"running"`
	Pid     int       `json:"pid,omitempty"` // of the supervisor
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Exit    int       `json:"exit"`             // exit code, or 128+n after signal n
	Reason  string    `json:"reason,omitempty"` // why it ended, in one clause
}

// Port is a TCP port that accepts connections on the loopback interface.
type Port struct {
	Port    int    `json:"port"`
	Program string `json:"program,omitempty"` // name of the listening process, if it can be read
}

// Survey is the report of a container about its apps.
type Survey struct {
	Apps  []State           `json:"apps"`
	Ports []Port            `json:"ports"`
	Found map[string]string `json:"found"` // programs that were looked for, with their paths
}

// MaxName is the length of the longest name.
const MaxName = 24

var name = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// CheckTarget returns the port of an app that is named by one, and 0 for a name.
func CheckTarget(app string) (port int, err error) {
	if n, err := strconv.ParseUint(app, 10, 16); err == nil && n > 0 && strconv.FormatUint(n, 10) == app {
		return int(n), nil
	}
	return 0, CheckName(app)
}

// CheckName returns an error if a name cannot be that of an app: it is part of a host name, where
// two hyphens separate it from the session, and numbers stand for ports.
func CheckName(s string) error {
	if len(s) > MaxName || !name.MatchString(s) || strings.Contains(s, "--") {
		return fmt.Errorf("app name %q must have 1 to %d lower-case letters, digits and single hyphens, and begin with a letter", s, MaxName)
	}
	return nil
}
