// Package runner implements the berth-runner program. It is bind-mounted read-only into every
// container, where it is process 1 (Init) and finds a shell for terminals (Shell). Outside the
// container it writes the log of a kernel (Log). It requires nothing from the image: no libc, no
// shell.
package runner

import "github.com/berthhq/berth/internal/appstate"

// Paths of the runner and its inputs inside a container.
const (
	Path          = appstate.Runner
	BootstrapPath = "/opt/berth/bootstrap"
	ClusterPath   = "/opt/berth/cluster" // only in a session of several kernels; package peer describes the files
)

// The names of process 1 in /proc/PID/comm. A signal before Ready ends the process with exit code 2
// of Go's runtime, or is lost.
const (
	Name  = "runner"
	Ready = "berth-init"
)

// Exit codes for a command that was never started, as in shells.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitUsage         = 2
)
