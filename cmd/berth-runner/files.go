package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/berthhq/berth/agent/runner/files"
	"github.com/berthhq/berth/agent/runner/sshd"
)

// serveFiles serves one connection, and ends it when the agent hangs up.
func serveFiles() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored, so that an unfinished upload is still removed
	in := pollable(os.Stdin)
	defer context.AfterFunc(ctx, func() { in.Close() })()
	if err := files.Serve(in, os.Stdout, sshd.Home()); err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		return 1
	}
	return 0
}
