package kernel

import (
	"maps"
	"slices"
	"strings"
)

// env is a set of environment variables by name.
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

// list returns the variables sorted by name, so that the same request results in the same spec.
func (e env) list() []string {
	out := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		out = append(out, name+"="+e[name])
	}
	return out
}
