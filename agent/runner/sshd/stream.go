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

// half is a stream whose directions end one at a time.
type half interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies in both directions until both have ended. The end of one direction is passed on, and
// the other one continues.
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
	if err != nil { // the receiver is gone, so the sender must not wait for it
		to.Close()
		from.Close()
	}
}

// environ sets a variable in a list, in place of one with the same name.
func environ(env []string, name, value string) []string {
	for i, v := range env {
		if strings.HasPrefix(v, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}
