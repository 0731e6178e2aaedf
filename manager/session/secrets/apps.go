package secrets

import (
	"slices"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/seal"
)

// environments returns the environments of the apps that have one, by the names of the apps.
func environments(apps []appstate.App) map[string]map[string]string {
	m := map[string]map[string]string{}
	for _, a := range apps {
		if len(a.Environment) > 0 {
			m[a.Name] = a.Environment
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// WithoutValues returns the apps with empty values of their variables.
func WithoutValues(apps []appstate.App) []appstate.App {
	out := slices.Clone(apps)
	for i, a := range out {
		if len(a.Environment) == 0 {
			continue
		}
		out[i].Environment = make(map[string]string, len(a.Environment))
		for name := range a.Environment {
			out[i].Environment[name] = ""
		}
	}
	return out
}

// Apps returns the apps of a session's request, with their environments. The caller has made sure
// that the viewer can enter the session.
func Apps(keys *seal.Ring, row *ent.Session) ([]appstate.App, error) {
	apps := slices.Clone(row.Apps)
	if len(environments(apps)) == 0 {
		return apps, nil
	}
	x, err := Open(keys, row)
	if err != nil {
		return nil, err
	}
	for i, a := range apps {
		apps[i].Environment = x.Apps[a.Name]
	}
	return apps, nil
}
