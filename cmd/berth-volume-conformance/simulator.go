package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

// serve runs the product of a simulator until it is interrupted, so that a plugin or a proxy can be
// tried by hand: --simulator NAME. It reports whether args have that flag, and returns the exit
// code.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) (asked bool, code int) {
	if len(args) == 0 || args[0] != "--simulator" {
		return false, 0
	}
	all := stands()
	i := slices.IndexFunc(all, func(s stand) bool { return s.env == onSimulator && len(args) == 2 && s.plugin == args[1] })
	if i < 0 {
		fmt.Fprintln(stderr, "want --simulator and the name of a plugin that has a simulator")
		return true, 2
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := show(ctx, all[i], stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return true, 1
	}
	return true, 0
}

// show runs a product until the context ends.
func show(ctx context.Context, s stand, stdout io.Writer) (err error) {
	mount, options, down, err := s.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	dir, err := os.MkdirTemp("", "simulator") // only this user can read it
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "options.json")
	if err := os.WriteFile(file, []byte(options+"\n"), 0o600); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "mounted at %s\noptions in %s\nuntil it is interrupted; try\n  berth-volume-conformance --mount %[1]s --options %[2]s bin/plugins/volume/%s\n", mount, file, s.plugin)
	<-ctx.Done()
	return nil
}
