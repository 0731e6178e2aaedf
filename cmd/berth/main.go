// Command berth works with a Berth cluster from the command line, through the
// public API only.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	// run and exec handle these two themselves; for all else they cancel.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a.ownSignals = stop
	code := a.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
