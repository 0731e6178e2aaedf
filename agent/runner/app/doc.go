// Package app implements the commands "app" and "ports" of berth-runner, which the agent executes in
// a container. An app is a program that a supervisor process keeps apart from its starter: process 1
// adopts the supervisor, which writes the program's output to a bounded log and records its end. The
// state is in a private directory in memory, so it ends with the container.
package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/berthhq/berth/internal/appstate"
)

// Usage describes the commands.
const Usage = `  berth-runner app start                 start the app that standard input describes
  berth-runner app status NAME           print the state of an app
  berth-runner app stop NAME             end an app
  berth-runner app log NAME BYTES        print the end of an app's output
  berth-runner app survey                print all apps, ports, and the programs named on standard input
  berth-runner ports                     print the TCP ports that listen on loopback
`

// maxInput bounds the standard input of a command.
const maxInput = 1 << 20

// Main runs a command and returns its exit code: 0, 1 for an error, 2 for a command that does not
// exist.
func Main(args []string) int {
	result, err := run(args)
	var unknown unknownCommand
	switch {
	case errors.As(err, &unknown):
		fmt.Fprint(os.Stderr, Usage)
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if text, ok := result.([]byte); ok {
		_, err = os.Stdout.Write(text)
	} else {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		return 1
	}
	return 0
}

type unknownCommand struct{}

func (unknownCommand) Error() string { return "unknown command" }

// run returns what the command prints: bytes, or a value to encode.
func run(args []string) (any, error) {
	command, name := "", ""
	if len(args) > 0 {
		command = args[0]
	}
	if len(args) > 1 {
		name = args[1]
	}
	switch {
	case command == "start" && len(args) == 1:
		var spec appstate.Spec
		if err := input(&spec); err != nil {
			return nil, err
		}
		return Start(spec)
	case command == "supervise" && len(args) == 2:
		return []byte(nil), supervise(name)
	case command == "status" && len(args) == 2:
		return Status(name)
	case command == "stop" && len(args) == 2:
		return Stop(name)
	case command == "log" && len(args) == 3:
		n, err := strconv.ParseInt(args[2], 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a number of bytes", args[2])
		}
		return Tail(name, n)
	case command == "survey" && len(args) == 1:
		var programs []string
		if err := input(&programs); err != nil {
			return nil, err
		}
		return Survey(programs)
	}
	return nil, unknownCommand{}
}

func input(into any) error {
	if err := json.NewDecoder(io.LimitReader(os.Stdin, maxInput)).Decode(into); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}
