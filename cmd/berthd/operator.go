package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/berthhq/berth/internal/opsserver"
)

// metricsHelp is the help of --metrics for roles with a directory of their own.
const metricsHelp = "address of /metrics, /healthz and /readyz, or off (default a loopback port, logged at the start and kept)"

// managerOps is the default address of a manager's metrics.
const managerOps = "127.0.0.1:8424"

// listenForOperator listens on the address of a manager's metrics; it returns nil for "off". A
// manager has no directory to store a port in.
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

// checks returns the readiness checks of all roles; the name of a node is part of its checks.
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
