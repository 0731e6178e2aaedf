package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runner/scp"
	"github.com/berthhq/berth/agent/runner/sshd"
)

// ssh runs one of the commands that belong to SSH.
func ssh(args []string) int {
	switch {
	case args[0] == "scp":
		return scp.Run(args[1:], os.Stdin, os.Stdout)
	case len(args) == 1:
		return serveSSH()
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// serveSSH serves one connection, and ends it when the agent hangs up.
func serveSSH() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // commands inherit an ignored signal, but not a caught one
	self, err := os.Executable()
	if err != nil {
		self = runner.Path
	}
	if err := os.Chdir(sshd.Home()); err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err) // SFTP then starts in the working directory of the image
	}
	if err := sshd.Serve(ctx, stdio{pollable(os.Stdin), os.Stdout}, sshd.Config{Runner: self}); err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		return 1
	}
	return 0
}

// pollable returns a file whose reads end when it is closed.
func pollable(f *os.File) *os.File {
	if err := syscall.SetNonblock(int(f.Fd()), true); err != nil {
		return f
	}
	return os.NewFile(f.Fd(), f.Name())
}

type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

// Close closes both directions.
func (s stdio) Close() error {
	s.WriteCloser.Close()
	return s.ReadCloser.Close()
}
