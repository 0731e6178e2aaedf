// Package runner is what the berth-runner program does. It is bind-mounted
// read-only into every container and is its first process (Init), finds a
// shell for terminals (Shell), and outside the container writes a kernel's log
// (Log). It needs nothing of the image: no libc, no shell.
package runner

// Where the runner and its inputs are found inside a container.
const (
	Path          = "/opt/berth/runner"
	BootstrapPath = "/opt/berth/bootstrap"
)

// Exit codes for a command that never ran, as shells give them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitUsage         = 2
)
