package sshd

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// forwardAgent creates the socket of the client's agent (-A), one for all sessions of the
// connection. Its directory is private, and other kernels have other directories.
func (s *session) forwardAgent() bool {
	c := s.conn
	dir, err := c.scratch.dir()
	if err != nil {
		s.say("agent forwarding: " + err.Error())
		return false
	}
	path := filepath.Join(dir, "agent."+strconv.Itoa(os.Getpid()))
	c.mu.Lock()
	exists := c.listeners["agent"] != nil
	c.mu.Unlock()
	if !exists {
		one, err := listenPrivate(path)
		if err != nil {
			s.say("agent forwarding: " + err.Error())
			return false
		}
		l := &listener{all: []net.Listener{one}}
		if c.hold("agent", l) != nil {
			l.Close()
			return false
		}
		go l.serve(func(conn net.Conn) { c.deliver(conn, "auth-agent@openssh.com", nil) }) // ends with the connection
	}
	s.agent = path
	return true
}

// firstDisplay is the first number of a forwarded display, and port displayPort+n belongs to
// display n.
const (
	firstDisplay = 10
	lastDisplay  = 1000
	displayPort  = 6000
)

// display is a forwarded X11 display of a session.
type display struct {
	name      string // value of DISPLAY
	authority string // path of the file with the cookie
	key       string // key of the listener
	conn      *connection
}

// Close stops listening.
func (d *display) Close() {
	d.conn.drop(d.key)
	_ = os.Remove(d.authority)
}

// forwardX11 listens on the first free display (-X, -Y) and writes the client's cookie into a
// private file, so that only programs of the session can use the display.
func (s *session) forwardX11(payload []byte) bool {
	var q struct {
		Single           bool
		Protocol, Cookie string
		Screen           uint32
	}
	if ssh.Unmarshal(payload, &q) != nil || s.x11 != nil || s.started {
		return false
	}
	cookie, err := hex.DecodeString(q.Cookie)
	if err != nil {
		return false
	}
	l, number, err := listenDisplay()
	if err != nil {
		s.say("X11 forwarding: " + err.Error())
		return false
	}
	d := &display{name: fmt.Sprintf("localhost:%d.%d", number, q.Screen), key: fmt.Sprintf("x11 %d", number), conn: s.conn}
	if d.authority, err = s.conn.writeAuthority(number, q.Protocol, cookie); err == nil {
		err = s.conn.hold(d.key, l)
	}
	if err != nil {
		l.Close()
		s.say("X11 forwarding: " + err.Error())
		return false
	}
	s.x11 = d
	go l.serve(func(conn net.Conn) { // ends with the session
		if q.Single {
			s.conn.drop(d.key)
		}
		host, port := origin(conn)
		s.conn.deliver(conn, "x11", ssh.Marshal(struct {
			Origin string
			Port   uint32
		}{host, port}))
	})
	return true
}

func listenDisplay() (*listener, int, error) {
	for n := firstDisplay; n <= lastDisplay; n++ {
		if l, _, err := listenLoopback(uint32(displayPort + n)); err == nil {
			return l, n, nil
		}
	}
	return nil, 0, fmt.Errorf("no display from %d to %d is free", firstDisplay, lastDisplay)
}

// anyHost is the address family of an xauth entry that matches every address.
const anyHost = 0xffff

// writeAuthority writes an xauth file with one cookie.
func (c *connection) writeAuthority(number int, protocol string, cookie []byte) (string, error) {
	dir, err := c.scratch.dir()
	if err != nil {
		return "", err
	}
	entry := binary.BigEndian.AppendUint16(nil, anyHost)
	for _, field := range [][]byte{nil, []byte(strconv.Itoa(number)), []byte(protocol), cookie} {
		entry = binary.BigEndian.AppendUint16(entry, uint16(len(field)))
		entry = append(entry, field...)
	}
	path := filepath.Join(dir, "xauthority-"+rand.Text())
	return path, os.WriteFile(path, entry, 0o600)
}
