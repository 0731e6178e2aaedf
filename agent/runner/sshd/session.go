package sshd

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/internal/sshmux"
)

// session is a channel of the type session: one command, shell or subsystem.
type session struct {
	conn *connection
	ch   ssh.Channel

	env     []string // variables that the client sent
	size    int      // bytes of env
	term    *terminal
	x11     *display
	agent   string // path of the socket of the client's agent
	started bool
	work    sync.WaitGroup

	mu      sync.Mutex
	process *process
}

// serveSession serves a session channel until the client or the command ends it.
func (c *connection) serveSession(n newChannel) {
	ch, requests, err := n.Accept()
	if err != nil {
		return
	}
	s := &session{conn: c, ch: ch}
	for r := range requests {
		ok, run := s.handle(r)
		_ = r.Reply(ok, nil)
		if run != nil {
			s.work.Go(func() {
				run()
				ch.Close()
			})
		}
	}
	ch.Close()
	s.hangUp()
	s.work.Wait()
	if s.x11 != nil {
		s.x11.Close()
	}
}

// handle handles a request and returns its answer, and a function to call after the answer is sent.
func (s *session) handle(r *sshmux.Request) (ok bool, run func()) {
	switch r.Type {
	case "env":
		return s.setenv(r.Payload), nil
	case "pty-req":
		return s.requestTerminal(r.Payload), nil
	case "window-change":
		return s.resize(r.Payload), nil
	case "signal":
		return s.signal(r.Payload), nil
	case "auth-agent-req@openssh.com":
		return s.forwardAgent(), nil
	case "x11-req":
		return s.forwardX11(r.Payload), nil
	case "shell", "exec", "subsystem":
		return s.start(r)
	}
	return false, nil
}

// start starts the program of the session. A session can have only one.
func (s *session) start(r *sshmux.Request) (ok bool, run func()) {
	var q struct{ Text string }
	if s.started || r.Type != "shell" && ssh.Unmarshal(r.Payload, &q) != nil {
		return false, nil
	}
	switch {
	case r.Type == "subsystem" && q.Text != "sftp":
		return false, nil
	case r.Type == "subsystem":
		run = s.sftp
	default:
		run = func() { s.run(r.Type == "shell", q.Text) }
	}
	s.started = true
	return true, run
}

func (s *session) setenv(payload []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(payload, &v) != nil || !settable(v.Name, v.Value) || s.started {
		return false
	}
	s.size += len(v.Name) + len(v.Value) + 2
	if s.size > maxEnvironment || len(s.env) >= maxVariables {
		return false
	}
	s.env = environ(s.env, v.Name, v.Value)
	return true
}

// environment returns the environment of the session's process.
func (s *session) environment() []string {
	env := append([]string(nil), s.conn.account.env...)
	set := func(name, value string) {
		if value != "" {
			env = environ(env, name, value)
		}
	}
	env = append(env, s.env...) // os/exec passes the last of two values
	if shell, err := runner.FindShell(); err == nil {
		set("SHELL", shell[0])
	}
	set("SSH_CLIENT", s.conn.client)
	set("SSH_CONNECTION", s.conn.connection)
	set("SSH_AUTH_SOCK", s.agent)
	if s.term != nil {
		set("SSH_TTY", s.term.path)
		set("TERM", s.term.name)
	}
	if s.x11 != nil {
		set("DISPLAY", s.x11.name)
		set("XAUTHORITY", s.x11.authority)
	}
	return env
}

// sftp serves files in this process, so that it works in an empty image. Relative paths start at
// the working directory of the process; package sftp has an option for another directory, but it
// would change the targets of symbolic links.
func (s *session) sftp() {
	server, err := sftp.NewServer(subsystem{s.ch}, sftp.WithAllocator())
	if err == nil {
		err = server.Serve()
	}
	status := 0
	if err != nil {
		s.say("SFTP: " + err.Error())
		status = 1
	}
	s.exit(status)
}

// subsystem keeps the channel open after the end of the subsystem, for its exit status.
type subsystem struct{ ssh.Channel }

func (s subsystem) Close() error { return s.CloseWrite() }

// say writes a message of the server to the client's stderr.
func (s *session) say(message string) {
	_, _ = io.WriteString(s.ch.Stderr(), "berth: "+message+"\r\n")
}

func (s *session) exit(status int) {
	_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

// fail ends a session whose command could not start.
func (s *session) fail(status int, err error) {
	s.say(err.Error())
	_ = s.ch.CloseWrite()
	s.exit(status)
}

// scratch is a private directory of the connection, created on first use.
type scratch struct {
	mu   sync.Mutex
	path string
	gone bool
}

// scratchParents are the directories for private files and sockets, in order of preference. The
// first is in memory and belongs to the container alone. The others can be folders that are mounted
// in other containers whose processes run as the same user.
var scratchParents = []string{"/dev/shm", "/tmp", "/run"}

// dir returns the directory. Only the container's user can read it.
func (d *scratch) dir() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return "", errClosed
	}
	if d.path != "" {
		return d.path, nil
	}
	var err error
	for _, parent := range scratchParents {
		var path string
		if path, err = os.MkdirTemp(parent, "ssh-"); err == nil { // mode 0700
			d.path = path
			return path, nil
		}
	}
	return "", fmt.Errorf("no directory for sockets can be created: %w", err)
}

func (d *scratch) remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	if d.path != "" {
		_ = os.RemoveAll(d.path)
	}
}
