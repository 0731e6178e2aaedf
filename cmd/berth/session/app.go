package session

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// parseApp reads NAME=PORT[:COMMAND]. The shell of the container runs the command, in which {port}
// and {prefix} are replaced.
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

// openIn opens an app of a session that was just created, with the first mounted folder. The address
// shows the progress until the session runs.
func openIn(ctx context.Context, a *cli.App, c *client.Client, s *client.Session, app string, mounts []client.MountInput) error {
	in := client.OpenAppInput{Session: s.ID, App: app}
	if len(mounts) > 0 {
		in.Folder = mounts[0].Target
		if _, err := uuid.Parse(mounts[0].Vfolder); in.Folder == "" && err != nil {
			in.Folder = path.Join("/home/work", mounts[0].Vfolder)
		}
	}
	opened, err := c.OpenApp(ctx, in)
	if err != nil {
		return err
	}
	return a.OpenAddress(ctx, opened, false)
}
