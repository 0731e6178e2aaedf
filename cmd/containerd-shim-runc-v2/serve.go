package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	shimapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	"github.com/containerd/fifo"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
)

// socketFD is the descriptor of the listener that the action start passes on.
const socketFD = 3

// server is the process that stays beside a container.
type server struct{ namespace, id, containerd string }

// run serves the task of one container until containerd shuts it down. The working
// directory is the container's bundle.
func (s server) run(ctx context.Context) error {
	signals := make(chan os.Signal, 32)
	// SIGPIPE is caught because a closed pipe, for example of a stopped containerd, must not end
	// the shim.
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGINT, syscall.SIGTERM)
	if err := reaper.SetSubreaper(1); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	if err := logTo(ctx, "log"); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	ctx, service := shutdown.WithShutdown(namespaces.WithNamespace(ctx, s.namespace))
	memory := newMemory()
	listener, err := serve(ctx, service, memory)
	if err != nil {
		return err
	}
	defer func() { _ = shim.RemoveSocket("unix://" + listener.Addr().String()) }()
	for {
		select {
		case got := <-signals:
			memory.used()
			handle(got, service)
		case <-service.Done():
			if err := service.Err(); !errors.Is(err, shutdown.ErrShutdown) {
				return err
			}
			return nil
		}
	}
}

func handle(got os.Signal, service shutdown.Service) {
	switch got {
	case syscall.SIGCHLD:
		if err := reaper.Reap(); err != nil {
			log.L.WithError(err).Error("reap exit status")
		}
	case syscall.SIGUSR1: // as other shims do
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	case syscall.SIGINT, syscall.SIGTERM:
		service.Shutdown()
	}
}

// logTo writes standard error and the log into a named pipe that containerd reads, and that a
// restarted containerd opens again.
func logTo(ctx context.Context, path string) error {
	f, err := fifo.OpenFifoDup2(ctx, path, syscall.O_WRONLY, 0o700, int(os.Stderr.Fd()))
	if err != nil {
		return err
	}
	log.L.Logger.SetOutput(f)
	return log.SetFormat(log.TextFormat)
}

// serve answers requests of containerd. Only the user of this process can connect.
func serve(ctx context.Context, service shutdown.Service, memory *memory) (net.Listener, error) {
	listener, err := net.FileListener(os.NewFile(socketFD, "socket"))
	if err != nil {
		return nil, fmt.Errorf("take over the socket: %w", err)
	}
	publisher, err := shim.NewPublisher(os.Getenv("TTRPC_ADDRESS"))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd for events: %w", err)
	}
	tasks, err := task.NewTaskService(ctx, publisher, service)
	if err != nil {
		return nil, err
	}
	server, err := ttrpc.NewServer(
		ttrpc.WithServerHandshaker(ttrpc.UnixSocketRequireSameUser()),
		ttrpc.WithUnaryServerInterceptor(memory.intercept))
	if err != nil {
		return nil, err
	}
	shimapi.RegisterTTRPCTaskService(server, tasks)
	go func() {
		if err := server.Serve(ctx, listener); err != nil && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil {
			log.L.WithError(err).Fatal("serve tasks") // without the server the container is unreachable
		}
	}()
	return listener, nil
}
