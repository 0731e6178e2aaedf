package cluster

import (
	"io"
	"net"
	"time"
)

const dialTimeout = 2 * time.Second

// door passes every connection on to the first of several servers that takes it.
type door struct {
	to       []string
	listener net.Listener
}

// open listens, and returns the URL.
func (d *door) open() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	d.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.pass(c)
		}
	}()
	return "http://" + l.Addr().String(), nil
}

func (d *door) pass(in net.Conn) {
	defer in.Close()
	for _, address := range d.to {
		out, err := net.DialTimeout("tcp", address, dialTimeout)
		if err != nil {
			continue
		}
		defer out.Close()
		go func() {
			_, _ = io.Copy(out, in)
			out.Close()
		}()
		_, _ = io.Copy(in, out)
		return
	}
}
