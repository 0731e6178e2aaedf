package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// AppInput describes an app of a session: a program that listens on a loopback port.
type AppInput struct {
	Name        string
	Title       *string
	Port        int
	Command     []string // nil: the session itself starts it, or the catalogue knows how
	Environment map[string]string
}

const (
	maxApps     = 32 // of a session
	maxAppTitle = 64 // characters
)

// checkApps checks the apps of a request.
func checkApps(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	if len(in.Apps) > maxApps {
		return problem.Invalid("apps", "has %d apps", len(in.Apps)).WithLimit(fmt.Sprint(maxApps))
	}
	spec.apps = make([]appstate.App, 0, len(in.Apps))
	total := 0
	for i, a := range in.Apps {
		app := appstate.App{Name: a.Name, Port: a.Port, Command: a.Command, Environment: a.Environment}
		if a.Title != nil {
			app.Title = *a.Title
		}
		total += size(a.Command)
		for k, v := range a.Environment {
			total += len(k) + len(v) + 2
		}
		field := fmt.Sprintf("apps[%d].", i)
		if err := checkApp(field, app); err != nil {
			return err
		}
		if slices.ContainsFunc(spec.apps, func(b appstate.App) bool { return b.Name == a.Name }) {
			return problem.Invalid(field+"name", "there are two apps named %q", a.Name)
		}
		spec.apps = append(spec.apps, app)
	}
	if total > maxCommand {
		return problem.Invalid("apps", "has %d bytes of commands and environments", total).WithLimit(fmt.Sprint(maxCommand))
	}
	return nil
}

func checkApp(field string, a appstate.App) error {
	if err := appstate.CheckName(a.Name); err != nil {
		return problem.Invalid(field+"name", "%v", err)
	}
	if a.Title != "" {
		if err := naming.Line(field+"title", a.Title, maxAppTitle); err != nil {
			return err
		}
	}
	if a.Port < 1 || a.Port > 65535 {
		return problem.Invalid(field+"port", "%d is not a port", a.Port).WithLimit("1..65535")
	}
	for i, arg := range a.Command {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			return problem.Invalid(fmt.Sprintf("%scommand[%d]", field, i), "must not be empty or contain a zero byte")
		}
	}
	for k, v := range a.Environment {
		if !naming.IsVariable(k) || strings.ContainsRune(v, 0) {
			return problem.Invalid(field+"environment", "%q cannot be an environment variable", k)
		}
	}
	return nil
}
