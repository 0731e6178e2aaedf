package session

import (
	"errors"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
)

// parseApp reads NAME=PORT[:COMMAND]. The command is one for the shell of the container, where
// {port} and {prefix} are replaced.
func parseApp(text string) ([]client.AppInput, error) {
	name, rest, named := strings.Cut(text, "=")
	number, command, starts := strings.Cut(rest, ":")
	port, err := strconv.Atoi(number)
	if !named || name == "" || err != nil || port < 1 || port > 65535 || starts && strings.TrimSpace(command) == "" {
		return nil, errors.New("write NAME=PORT or NAME=PORT:COMMAND, with a port from 1 to 65535")
	}
	app := client.AppInput{Name: name, Port: port}
	if starts {
		app.Command = []string{"/bin/sh", "-c", command}
	}
	return []client.AppInput{app}, nil
}
