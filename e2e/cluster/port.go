package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
)

// freePort is an address of this machine on which no one listens. Its port is below
// those that the kernel gives away by itself, so that no one has it by chance when a
// server comes, or comes back after a restart.
func freePort(network string) (address string, err error) {
	for range 100 {
		address = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		var l io.Closer
		if network == "udp" {
			l, err = net.ListenPacket(network, address)
		} else {
			l, err = net.Listen(network, address)
		}
		if err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
