package sshd

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// endpoints returns the values of SSH_CLIENT and SSH_CONNECTION.
func endpoints(c interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}) (client, connection string) {
	host, port := endpoint(c.RemoteAddr())
	at, on := endpoint(c.LocalAddr())
	return fmt.Sprintf("%s %s %s", host, port, on), fmt.Sprintf("%s %s %s %s", host, port, at, on)
}

func endpoint(a net.Addr) (host, port string) {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP.String(), fmt.Sprint(t.Port)
	}
	return "UNKNOWN", "65535"
}

// half is a stream whose two directions can be closed separately.
type half interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies in both directions until both have ended. When one direction ends, only that
// direction is closed.
func join(a, b half) {
	var both sync.WaitGroup
	both.Go(func() { pump(a, b) })
	both.Go(func() { pump(b, a) })
	both.Wait()
	a.Close()
	b.Close()
}

func pump(to, from half) {
	_, err := io.Copy(to, from)
	_ = to.CloseWrite()
	if err != nil { // without a receiver, the sender must not block
		to.Close()
		from.Close()
	}
}

// environ sets a variable in a list, and replaces one with the same name.
func environ(env []string, name, value string) []string {
	for i, v := range env {
		if strings.HasPrefix(v, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}
