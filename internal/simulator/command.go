package simulator

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Output is the output and the exit code of a program.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Command creates a fake program, for products that are managed by one. Each run of it calls run in
// this process. The path is an option of the plugin. The program is a bash script that connects to
// a port of this machine.
func (a *Server) Command(name string, run func(ctx context.Context, args []string) Output) (path string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	key := Random() // keeps other users' processes out
	a.work.Go(func() {
		<-a.ctx.Done()
		listener.Close()
	})
	a.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.work.Go(func() { a.command(conn, key, name, run) })
		}
	})
	path = filepath.Join(a.dir, name)
	script := fmt.Sprintf(program, listener.Addr().(*net.TCPAddr).Port, key)
	return path, os.WriteFile(path, []byte(script), 0o700)
}

// program sends the key, each argument in base64 on a line, and an empty line. The response has
// three lines: the exit code, and both outputs in base64.
const program = `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/%d || { echo "the array does not answer" >&2; exit 111; }
{ echo %s; for a in "$@"; do echo "=$(printf %%s "$a" | base64 -w 0)"; done; echo; } >&3
read -r code <&3; read -r out <&3; read -r err <&3
printf %%s "$out" | base64 -d; printf %%s "$err" | base64 -d >&2
exit "${code:-111}"
`

func (a *Server) command(conn net.Conn, key, name string, run func(context.Context, []string) Output) {
	defer conn.Close()
	stop := context.AfterFunc(a.ctx, func() { conn.Close() })
	defer stop()
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != key {
		return
	}
	var args []string
	complete := false // ignores a program that was killed before it sent everything
	for lines.Scan() {
		if complete = lines.Text() == ""; complete {
			break
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(lines.Text(), "="))
		if err != nil {
			return
		}
		args = append(args, string(raw))
	}
	if !complete {
		return
	}
	out := run(a.ctx, args)
	a.keep(Exchange{Method: name, Target: strings.Join(args, " "), Status: out.Code, Answer: out.Stdout + out.Stderr})
	code := base64.StdEncoding.EncodeToString
	fmt.Fprintf(conn, "%d\n%s\n%s\n", out.Code, code([]byte(out.Stdout)), code([]byte(out.Stderr)))
}
