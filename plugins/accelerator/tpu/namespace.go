package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// within dials from inside a network namespace, which is where a container's
// programs listen.
func within(namespace string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		type dialled struct {
			conn net.Conn
			err  error
		}
		done := make(chan dialled, 1)
		go func() {
			// The thread is never unlocked: it ends with this goroutine, and no other
			// code ever runs inside the container's network.
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
