package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// within dials from a network namespace, because a container's programs listen in theirs.
func within(namespace string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		type dialled struct {
			conn net.Conn
			err  error
		}
		done := make(chan dialled, 1)
		go func() {
			// The thread is never unlocked: it ends with this goroutine, so that no other code runs
			// in the container's network namespace.
			runtime.LockOSThread()
			conn, err := enter(ctx, namespace, address)
			done <- dialled{conn, err}
		}()
		d := <-done
		return d.conn, d.err
	}
}

func enter(ctx context.Context, namespace, address string) (net.Conn, error) {
	f, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the network of the container: %w", err)
	}
	return direct(ctx, address)
}
