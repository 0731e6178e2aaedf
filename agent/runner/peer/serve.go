package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/runner/sshd"
)

// Server is the SSH server of a kernel for the other kernels of its session.
type Server struct {
	Dir      string         // directory of the files
	Runner   string         // path of the berth-runner program
	Listener net.Listener   // see Listen
	From     []netip.Prefix // networks that clients can connect from
	// Arrived is called with the address of each connection, before the client has logged in.
	Arrived func(netip.Addr)
}

// Listen listens on the addresses of the container's interface, so that no forward to its loopback
// reaches the server, and returns the networks of the interface.
func Listen(name string) (net.Listener, []netip.Prefix, error) {
	at, err := net.InterfaceByName(name)
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", name, err)
	}
	addresses, err := at.Addrs()
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", name, err)
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().Is4() {
			continue
		}
		l, err := net.Listen("tcp4", net.JoinHostPort(prefix.Addr().String(), strconv.Itoa(Port)))
		return l, []netip.Prefix{prefix.Masked()}, err
	}
	return nil, nil, fmt.Errorf("interface %s has no IPv4 address", name)
}

// Serve serves connections until the context ends. Only clients with the key of the session can log
// in.
func (s Server) Serve(ctx context.Context) error {
	user, err := readKey(filepath.Join(s.Dir, UserKey))
	if err != nil {
		return err
	}
	host, err := readKey(filepath.Join(s.Dir, hostKey))
	if err != nil {
		return err
	}
	login := sshd.Login{HostKey: host, Client: user.PublicKey(), Time: handshakeTime}
	defer context.AfterFunc(ctx, func() { s.Listener.Close() })()
	free := make(chan struct{}, maxConnections)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := s.Listener.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // for example, no free file descriptor
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !s.welcome(conn) {
			conn.Close()
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		all.Go(func() {
			defer func() { <-free }()
			_ = sshd.ServeNetwork(ctx, conn, login, sshd.Config{Runner: s.Runner}) // its errors are those of clients
		})
	}
}

// welcome reports whether the client is in the session's network.
func (s Server) welcome(conn net.Conn) bool {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	address := from.AddrPort().Addr().Unmap()
	for _, network := range s.From {
		if network.Contains(address) {
			if s.Arrived != nil {
				s.Arrived(address)
			}
			return true
		}
	}
	return false
}

func readKey(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}
