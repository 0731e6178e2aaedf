// Package proc runs helper programs as children of this process, and makes sure that they end with
// it, however it ends. Import it to run a program that must not outlive this process, such as a
// private database or a plugin.
package proc

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// The kernel sends the parent death signal when the thread that forked ends, not when the process
// ends, and Go ends threads at any time. So every child is forked on one thread that a goroutine
// locks until the process ends.
var forks = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// OnParentThread runs f on the thread that lives as long as this process. A child that f starts
// with Pdeathsig set gets that signal exactly when this process ends. f must return soon: all forks
// wait for each other.
func OnParentThread(f func() error) error {
	done := make(chan error, 1)
	forks() <- func() { done <- f() }
	return <-done
}

// StartChild starts cmd so that it gets the signal when this process ends, even by SIGKILL, and so
// that Ctrl-C in a terminal does not reach it, because its owner stops it in order. It closes the
// command's extra files.
func StartChild(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = signal
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}()
	return OnParentThread(cmd.Start)
}
