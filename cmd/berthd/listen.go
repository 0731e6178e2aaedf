package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/berthhq/berth/internal/opsserver"
)

// listenAgain listens on a loopback port and stores it in a file, so that the next start uses
// the same address. Nodes and users remember the address.
func listenAgain(path string) (net.Listener, error) {
	address := "127.0.0.1:0"
	if b, err := os.ReadFile(path); err == nil {
		address = "127.0.0.1:" + strings.TrimSpace(string(b))
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on the port of %s: %w", path, err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(path, []byte(port+"\n"), 0o644); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// listenAt listens on the address of a flag, or on the stored loopback port of the data directory
// if the flag is empty. For "off", it returns nil.
func listenAt(flag, address, path string) (net.Listener, error) {
	switch address {
	case "off":
		return nil, nil
	case "":
		return listenAgain(path)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}

// lateHandler is a handler that is set after the creation of the server that uses it.
type lateHandler struct{ http.Handler }

// metricsHelp is the help of --metrics for roles with a directory of their own.
const metricsHelp = "address of /metrics, /healthz and /readyz, or off (default a loopback port, logged at the start and kept)"

// managerOps is the default address of a manager's metrics.
const managerOps = "127.0.0.1:8424"

// listenForOperator listens on the address of a manager's metrics; it returns nil for "off". A
// manager cannot store a port, because it has no data directory.
func listenForOperator(address string) (net.Listener, error) {
	if address != "" {
		return listenAt("metrics", address, "")
	}
	l, err := net.Listen("tcp", managerOps)
	if errors.Is(err, syscall.EADDRINUSE) { // in use by another manager on this machine
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return l, nil
}

// checks returns the readiness checks of all roles. Checks of a node include its name.
func (p *platform) checks() []opsserver.Check {
	all := p.manager.Checks()
	for i, checks := range [][]opsserver.Check{p.storage.Checks(), p.agent.Checks()} {
		for _, c := range checks {
			c.Name = []string{"storage", "agent"}[i] + "/" + c.Name
			all = append(all, c)
		}
	}
	return all
}
