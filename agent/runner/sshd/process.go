package sshd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// drainTime is how long the exit status waits for output of background processes. The channel
// itself stays open until all writers have closed the output, as with OpenSSH.
const drainTime = time.Second

// process is the running command of a session, with the server's ends of its streams.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser // nil with a terminal
	fed    chan struct{} // closed when the input has ended
	exited chan struct{} // closed after the end; then cmd.ProcessState is set
}

// run runs the command of a session to its end.
func (s *session) run(shell bool, text string) {
	argv, err := s.command(shell, text)
	if err != nil {
		s.fail(127, err)
		return
	}
	p, err := s.launch(argv)
	if err != nil {
		s.fail(exitCode(err), err)
		return
	}
	go func() { // can outlive the connection
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	drained := make(chan struct{})
	go func() {
		s.output(p)
		close(drained)
	}()
	go func() {
		s.input(p)
		close(p.fed)
	}()
	s.finish(p, drained)
}

func exitCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// launch starts the command in a process group of its own, so that signals reach its children.
func (s *session) launch(argv []string) (*process, error) {
	path, err := lookPath(argv[0], value(s.conn.account.env, "PATH"))
	if err != nil {
		return nil, err
	}
	argv[0] = filepath.Base(argv[0]) // shells use this name in messages
	p := &process{fed: make(chan struct{}), exited: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: argv, Dir: s.conn.account.home, Env: s.environment(), SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	var theirs []*os.File
	if s.term != nil {
		theirs, err = s.term.attach(p)
	} else {
		theirs, err = p.pipes()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// pipes connects the command with three pipes and returns its ends of them.
func (p *process) pipes() (theirs []*os.File, err error) {
	in, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin = ourIn
	ourOut, out, err := os.Pipe()
	if err != nil {
		return []*os.File{in}, err
	}
	p.stdout = ourOut
	ourErr, errOut, err := os.Pipe()
	if err != nil {
		return []*os.File{in, out}, err
	}
	p.stderr = ourErr
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errOut
	return []*os.File{in, out, errOut}, nil
}

// close closes the server's ends. Processes that still write get SIGPIPE, and the processes of a
// terminal get SIGHUP.
func (p *process) close() {
	for _, c := range []io.Closer{p.stdin, p.stdout, p.stderr} {
		if c != nil {
			c.Close()
		}
	}
}

// input copies the client's input to the command. After the command has closed its stdin, the rest
// is read and dropped, so that the client does not block.
func (s *session) input(p *process) {
	_, err := io.Copy(p.stdin, s.ch)
	if err != nil {
		_, _ = io.Copy(io.Discard, s.ch)
	}
	if s.term == nil { // a terminal ends its input with a character
		p.stdin.Close()
	}
}

// output copies the command's output until all processes that have it open have ended, or the
// client has closed the channel.
func (s *session) output(p *process) {
	var both sync.WaitGroup
	copyOut := func(to io.Writer, from io.ReadCloser) {
		_, _ = io.Copy(to, from)
		from.Close()
	}
	both.Go(func() { copyOut(s.ch, p.stdout) })
	if p.stderr != nil {
		both.Go(func() { copyOut(s.ch.Stderr(), p.stderr) })
	}
	both.Wait()
}

// finish sends the end of the command.
func (s *session) finish(p *process, drained chan struct{}) {
	gone := s.conn.gone()
	select {
	case <-p.exited:
	case <-gone:
		return
	}
	select {
	case <-drained:
	case <-time.After(drainTime):
	case <-gone:
		return
	}
	s.sendState(p.cmd.ProcessState)
	select {
	case <-drained:
		_ = s.ch.CloseWrite()
	case <-gone:
	}
}

// sendState sends the exit code or the signal of the process.
func (s *session) sendState(state *os.ProcessState) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		s.exit(state.ExitCode())
		return
	}
	name, known := signalName(status.Signal())
	if !known {
		name = "SIG@openssh.com"
	}
	_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Name    string
		Core    bool
		Message string
		Lang    string
	}{name, status.CoreDump(), "", ""}))
}

// signals are the signals that the protocol has names for.
var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP,
	"ILL": syscall.SIGILL, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
	"QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func signalName(signal syscall.Signal) (string, bool) {
	for name, s := range signals {
		if s == signal {
			return name, true
		}
	}
	return "", false
}

// signal sends a signal to the processes of the session.
func (s *session) signal(payload []byte) bool {
	var q struct{ Name string }
	if ssh.Unmarshal(payload, &q) != nil {
		return false
	}
	signal, known := signals[q.Name]
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if !known || p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false // another process may have the process ID
	default:
		return syscall.Kill(-p.cmd.Process.Pid, signal) == nil
	}
}

// hangUp closes the streams of a process whose client has gone, after the data that the client sent.
func (s *session) hangUp() {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p != nil {
		select {
		case <-p.fed:
		case <-time.After(drainTime): // the process does not read
		}
		p.close()
	} else if s.term != nil {
		s.term.close()
	}
}
