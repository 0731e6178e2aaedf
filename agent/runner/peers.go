package runner

import (
	"os"
	"syscall"
	"time"
)

// Timing of the SSH server for the other kernels.
const (
	peersAgain = time.Second      // pause before the server is restarted; doubles each time
	peersCalm  = time.Minute      // longest pause; a server that ran longer is restarted after peersAgain again
	peersWait  = 60 * time.Second // how long a command waits for the other kernels
)

// peers is the process that serves SSH to the other kernels of the session.
type peers struct {
	pid   int
	met   chan struct{}    // closed once all kernels have met, or the server has ended; nil in a session of one kernel
	again <-chan time.Time // fires when the server must be restarted
	pause time.Duration    // the last pause
	began time.Time
}

// peersExpected reports whether the session has several kernels with SSH between them.
func peersExpected() bool {
	_, err := os.Stat(ClusterPath + "/ssh_config")
	return err == nil
}

// start starts the server. Its third descriptor is a pipe into which it writes when all kernels have
// met.
func (p *peers) start() {
	p.again, p.began = nil, time.Now()
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		complain(1, "SSH between the containers of the session: %v", err)
		p.later()
		return
	}
	pid, err := syscall.ForkExec(Path, []string{Path, "peers"}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, uintptr(pipe[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // signals for the command do not end it
	})
	syscall.Close(pipe[1])
	if err != nil {
		syscall.Close(pipe[0])
		complain(1, "SSH between the containers of the session: %v", err)
		p.later()
		return
	}
	p.pid = pid
	met := make(chan struct{})
	p.met = met
	go func() { // ends with the server
		f := os.NewFile(uintptr(pipe[0]), "met")
		defer f.Close()
		var b [1]byte
		_, _ = f.Read(b[:])
		close(met)
	}()
}

// noteEnd schedules a restart if the ended process is the server.
func (p *peers) noteEnd(pid int) {
	if pid == p.pid {
		p.pid = 0
		p.later()
	}
}

// later schedules a restart. A server that cannot start, for example because its port is in use,
// must not fill the log.
func (p *peers) later() {
	p.pause = min(max(2*p.pause, peersAgain), peersCalm)
	if time.Since(p.began) >= peersCalm {
		p.pause = peersAgain
	}
	p.again = time.After(p.pause)
}

// meet waits until the other kernels of the session have started, so that the command can reach
// them. After peersWait, the command starts anyway.
func (in *initProcess) meet() {
	if in.peers.met == nil {
		return
	}
	late := time.After(peersWait)
	for !in.ended {
		select {
		case <-in.peers.met:
			return
		case <-late:
			complain(0, "not all containers of the session have started within %s; the command starts now", peersWait)
			return
		case s := <-in.signals:
			in.note(s)
		case <-in.children:
			in.reap(0)
		}
	}
}
