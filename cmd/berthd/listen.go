package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// listenAgain opens a loopback port and remembers it in a file: nodes and people
// keep the address, so it should be the same at the next start.
func listenAgain(path string) (net.Listener, error) {
	address := "127.0.0.1:0"
	if b, err := os.ReadFile(path); err == nil {
		address = "127.0.0.1:" + strings.TrimSpace(string(b))
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on the port of %s: %w", path, err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(path, []byte(port+"\n"), 0o644); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// listenAt opens the address that a flag has: what was asked for, else a loopback port of
// this data directory's own; nil where it is "off".
func listenAt(flag, address, path string) (net.Listener, error) {
	switch address {
	case "off":
		return nil, nil
	case "":
		return listenAgain(path)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}

// lateHandler is a handler that is set after the server that uses it was made.
type lateHandler struct{ http.Handler }
