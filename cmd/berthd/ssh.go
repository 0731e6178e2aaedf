package main

import (
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/gateway/sshdoor"
	"github.com/berthhq/berth/internal/sshserver"
)

// sshDoor returns the door of a gateway that serves SSH. All gateways of a cluster have the same host
// key, which is created if the file does not exist.
func sshDoor(l net.Listener, keyFile string, r prometheus.Registerer) gateway.NewDoor {
	return func(p gateway.Parts) (gateway.Door, error) {
		key, err := sshserver.HostKey(keyFile)
		if err != nil {
			return nil, fmt.Errorf("SSH host key: %w", err)
		}
		return sshdoor.New(sshdoor.Config{
			Listener: l, HostKey: key, Client: p.Client, Auth: p.Auth, Idle: p.Idle, Audit: p.Audit,
			Agents: p.Agents, Registry: r, Logger: p.Logger,
		}), nil
	}
}
