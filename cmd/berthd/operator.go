package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/berthhq/berth/internal/opsserver"
)

// metricsHelp is the help of --metrics where a role has a directory of its own.
const metricsHelp = "address of /metrics, /healthz and /readyz, or off (default a loopback port, logged at the start and kept)"

// managerOps is where a manager serves its metrics if nothing else is asked for.
const managerOps = "127.0.0.1:8424"

// listenForOperator opens the address of a manager's metrics; nil where it is "off". A
// manager has no directory of its own to keep a port in.
func listenForOperator(address string) (net.Listener, error) {
	if address != "" {
		return listenAt("metrics", address, "")
	}
	l, err := net.Listen("tcp", managerOps)
	if errors.Is(err, syscall.EADDRINUSE) { // another manager on this machine
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return l, nil
}

// checks are those of every role; the names of nodes say whose they are.
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
