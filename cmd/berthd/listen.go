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

// listenAgain opens a loopback port and remembers it in a file: nodes keep the
// address of their manager, so it should be the same at the next start.
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
		return nil, fmt.Errorf("listen for nodes: %w", err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(path, []byte(port+"\n"), 0o644); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// lateHandler is a handler that is set after the server that uses it was made.
type lateHandler struct{ http.Handler }
