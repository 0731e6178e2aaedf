package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runner/peer"
	"github.com/berthhq/berth/agent/runner/sshd"
)

// servePeers serves SSH to the other kernels of the session until the container ends. It writes a byte
// into descriptor 3 once all kernels have started.
func servePeers() int {
	met := os.NewFile(3, "met")
	syscall.CloseOnExec(3)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Commands inherit an ignored signal, but not a caught one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGHUP)
	if err := peers(ctx, met); err != nil {
		fmt.Fprintln(os.Stderr, "berth: SSH between the containers of the session:", err)
		return 1
	}
	return 0
}

func peers(ctx context.Context, met *os.File) error {
	own, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := peer.Connect("/etc/ssh/ssh_config", sshd.LoginHome()); err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err) // only clients of this kernel need the configuration
	}
	if err := os.Chdir(sshd.Home()); err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
	}
	l, from, err := peer.Listen(peer.Interface)
	if err != nil {
		return err
	}
	defer l.Close()
	all, err := peer.NewMeeting(peer.Dir, own, "/etc/hosts")
	if err != nil {
		return err
	}
	go func() { // ends with the process
		if all.Wait(ctx) == nil {
			_, _ = met.Write([]byte{1})
		}
		met.Close()
	}()
	return peer.Server{Dir: peer.Dir, Runner: runner.Path, Listener: l, From: from, Arrived: all.Arrived}.Serve(ctx)
}
