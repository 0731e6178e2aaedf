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

// listenAgain listens on a loopback port and stores it in a file, so that the next start uses
// the same address. Nodes and users remember the address.
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

// listenAt listens on the address of a flag, or on the stored loopback port of the data
// directory if the flag is empty. It returns nil for "off".
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

// lateHandler is a handler that is set after the creation of the server that uses it.
type lateHandler struct{ http.Handler }
