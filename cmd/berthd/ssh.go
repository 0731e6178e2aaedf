package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/gateway/sshaccess"
	"github.com/berthhq/berth/internal/sshserver"
	"github.com/berthhq/berth/manager/app"
)

// serveSSH adds SSH to a gateway that users reach at host. All gateways of a cluster have the same
// host keys, which are created if secrets, a directory, has none.
func serveSSH(cfg *gateway.Config, l net.Listener, host, secrets string, r prometheus.Registerer) error {
	keys, err := sshserver.HostKeys(filepath.Join(secrets, "ssh_host_ed25519_key"))
	if err != nil {
		return fmt.Errorf("SSH host keys: %w", err)
	}
	at := l.Addr().(*net.TCPAddr)
	if host == "" {
		host = at.IP.String()
	}
	cfg.SSH = &app.SSH{Host: host, Port: at.Port, HostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(keys[0].PublicKey())))}
	cfg.Services = append(cfg.Services, func(p gateway.Parts) (gateway.Service, error) {
		return sshaccess.New(sshaccess.Config{
			Listener: l, HostKeys: keys, Client: p.Client, Auth: p.Auth, Idle: p.Idle, Audit: p.Audit,
			Agents: p.Agents, Registry: r, Logger: p.Logger,
		}), nil
	})
	return nil
}
