package syntax

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
)

const (
	maxApps     = 32 // of a session
	maxAppTitle = 64 // characters
)

// Apps checks the apps of a session.
func Apps(apps []appstate.App) error {
	if len(apps) > maxApps {
		return problem.Invalid("apps", "has %d apps", len(apps)).WithLimit(fmt.Sprint(maxApps))
	}
	total := 0
	for i, a := range apps {
		total += Bytes(a.Command)
		for k, v := range a.Environment {
			total += len(k) + len(v) + 2
		}
		field := fmt.Sprintf("apps[%d].", i)
		if err := checkApp(field, a); err != nil {
			return err
		}
		if slices.ContainsFunc(apps[:i], func(b appstate.App) bool { return b.Name == a.Name }) {
			return problem.Invalid(field+"name", "there are two apps named %q", a.Name)
		}
	}
	if total > MaxCommand {
		return problem.Invalid("apps", "has %d bytes of commands and environments", total).WithLimit(fmt.Sprint(MaxCommand))
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
