package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// serve runs the product that a simulator stands in for until it is interrupted, to
// try a plugin or a proxy by hand: --array NAME. It tells whether that was asked
// for, and the exit code.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) (asked bool, code int) {
	if len(args) == 0 || args[0] != "--array" {
		return false, 0
	}
	all := stands()
	i := slices.IndexFunc(all, func(s stand) bool { return s.lane == simulator && len(args) == 2 && s.plugin == args[1] })
	if i < 0 {
		fmt.Fprintln(stderr, "want --array and the name of a plugin that has a simulator")
		return true, 2
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	mount, options, down, err := all[i].up(ctx)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return true, 2
	}
	fmt.Fprintf(stdout, "mounted at %s\noptions %s\nuntil it is interrupted\n", mount, options)
	<-ctx.Done()
	if err := down(); err != nil {
		fmt.Fprintln(stderr, err)
		return true, 1
	}
	return true, 0
}
