package kernel

import (
	"maps"
	"slices"
	"strings"
)

// env is an environment in which each name occurs once.
type env map[string]string

func newEnv(list []string) env {
	e := env{}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok {
			e[name] = value
		}
	}
	return e
}

func (e env) set(name, value string) { e[name] = value }

func (e env) setDefault(name, value string) {
	if e[name] == "" {
		e[name] = value
	}
}

// list is in order of the names, so that the same request gives the same spec.
func (e env) list() []string {
	out := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		out = append(out, name+"="+e[name])
	}
	return out
}
