package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Init is process 1 of a container: it runs the bootstrap script if one is mounted, then the
// command, forwards signals, reaps orphaned processes and returns the command's exit code, or 128+n
// if signal n ended it. Without a command it idles until SIGTERM or SIGINT. In a session of several
// kernels it also keeps the SSH server for the others running, and the command starts once all of them
// have started. It changes its process name from Name to Ready when it can forward signals.
func Init(command []string) int {
	holdOutput()
	in := &initProcess{signals: make(chan os.Signal, 64), children: make(chan os.Signal, 1)}
	// SIGCHLD has its own channel, so that other signals cannot fill it. One notification can stand
	// for several children.
	signal.Notify(in.children, syscall.SIGCHLD)
	signal.Notify(in.signals, forwarded...)
	_ = os.WriteFile("/proc/self/comm", []byte(Ready), 0)
	if peersExpected() {
		in.peers.start()
	}

	if _, err := os.Stat(BootstrapPath); err == nil {
		if code := in.bootstrap(); code != 0 || in.ended {
			return code
		}
	}
	if len(command) == 0 {
		return in.idle()
	}
	if in.meet(); in.ended {
		return 128 + int(syscall.SIGTERM)
	}
	return in.run(command)
}

// holdOutput keeps a read end of each output pipe open for the life of the container. Without it,
// the next write after the death of the log writer would kill the command with SIGPIPE; with it,
// output waits in the pipe for the next writer, which the agent starts. A pipe that cannot be
// opened is skipped, because some runtimes have none.
func holdOutput() {
	for fd := syscall.Stdout; fd <= syscall.Stderr; fd++ {
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			continue
		}
		_, _ = syscall.Open(fmt.Sprintf("/proc/self/fd/%d", fd), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	}
}

// forwarded are the signals that are passed on to the command. Job control and faults of the runner
// itself are excluded.
var forwarded = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

type initProcess struct {
	signals  chan os.Signal
	children chan os.Signal
	ended    bool // a signal to end was received
	peers    peers
}

// bootstrap runs the user's script. A script without an interpreter line runs in the image's shell.
func (in *initProcess) bootstrap() int {
	command := []string{BootstrapPath}
	if !hasInterpreter(BootstrapPath) {
		shell, err := FindShell()
		if err != nil {
			return complain(exitNotFound, "bootstrap script: %v", err)
		}
		command = append(shell, BootstrapPath)
	}
	code := in.run(command)
	if code != 0 {
		return complain(code, "bootstrap script ended with exit code %d", code)
	}
	return 0
}

func hasInterpreter(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [2]byte
	n, _ := f.Read(b[:])
	return n == 2 && string(b[:]) == "#!"
}

// run starts a command in a new process group, so that signals also reach the children of a shell,
// and waits for it.
func (in *initProcess) run(command []string) int {
	path, err := lookPath(command[0])
	if err != nil {
		return complain(exitNotFound, "%s: command not found", command[0])
	}
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return complain(exitNotFound, "%s: its interpreter is not in the image", command[0])
	case err != nil:
		return complain(exitNotExecutable, "%s: %v", command[0], err)
	}
	for {
		select {
		case s := <-in.signals:
			in.note(s)
			// The error is ignored: the process group no longer exists if only orphans of other
			// groups are left.
			_ = syscall.Kill(-pid, s.(syscall.Signal))
		case <-in.children:
			if code, ok := in.reap(pid); ok {
				return code
			}
		case <-in.peers.again:
			in.peers.start()
		}
	}
}

// idle waits for a signal to end.
func (in *initProcess) idle() int {
	for {
		select {
		case s := <-in.signals:
			if in.note(s); in.ended {
				return 0
			}
		case <-in.children:
			in.reap(0)
		case <-in.peers.again:
			in.peers.start()
		}
	}
}

func (in *initProcess) note(s os.Signal) {
	if s == syscall.SIGTERM || s == syscall.SIGINT {
		in.ended = true
	}
}

// reap waits for all ended children, and returns the exit code of the awaited one if it is among
// them.
func (in *initProcess) reap(awaited int) (code int, ok bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return code, ok
		}
		in.peers.noteEnd(pid)
		if pid != awaited {
			continue
		}
		ok, code = true, status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
	}
}

// lookPath finds a command in PATH. A name with a slash is returned unchanged.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name
		if st, err := os.Stat(path); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fs.ErrNotExist
}

// complain writes to stderr, which goes to the kernel's log, and returns code.
func complain(code int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "berth: "+format+"\n", args...)
	return code
}
