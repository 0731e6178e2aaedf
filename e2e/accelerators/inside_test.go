package accelerators

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/e2e/cluster"
)

// usual lists the device nodes and variables that every container has.
var (
	usualNodes = []string{"full", "null", "pts/ptmx", "random", "tty", "urandom", "zero"}
	usualEnv   = []string{"HOME", "PATH", "PWD", "SHLVL", "OLDPWD", "TERM", "HOSTNAME", "_"}
)

// inside inspects a device from inside a session, and returns the environment variables and files
// that describe it.
func inside(t *testing.T, u *cluster.User, session string, want view) (resources string) {
	t.Helper()
	want.files = maps.Clone(want.files)
	if want.files == nil {
		want.files = map[string]string{}
	}
	want.files[mount.Resources] += "" // exists and is read-only
	script := `cd /dev && find . \( -type c -o -type b \) | sed 's/^/node /;s/ \.\// /'; env | sed 's/^/env /'`
	files := slices.Sorted(maps.Keys(want.files))
	for i, file := range files {
		script += fmt.Sprintf(`; sed 's/^/file%d /' %[2]q; echo; (true >>%[2]q) 2>/dev/null && echo "rw %[2]s"`, i, file)
	}
	if want.writable != "" {
		script += fmt.Sprintf(`; echo x >%[1]q/of-a-test && rm %[1]q/of-a-test && echo "rw %[1]s"`, want.writable)
	}
	out, _ := u.Exec(session, script)
	var nodes, env, rw []string
	texts := map[string]string{}
	for line := range strings.Lines(out) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(text, "=")
		switch {
		case kind == "": // end of a file
		case kind == "node" && !slices.Contains(usualNodes, text):
			nodes = append(nodes, text)
		case kind == "env" && !slices.Contains(usualEnv, name) && !strings.HasPrefix(name, "BERTH_") && !strings.HasPrefix(name, "BACKENDAI_"):
			env = append(env, text)
		case kind == "rw":
			rw = append(rw, text)
		default:
			texts[kind] += text + "\n"
		}
	}
	same(t, "device nodes", want.nodes, nodes)
	same(t, "variables", want.env, env)
	same(t, "writable files", want.writable, rw)
	for i, file := range files {
		if text := texts[fmt.Sprintf("file%d", i)]; !strings.Contains(text, want.files[file]) {
			t.Errorf("%s: want %s in\n%s", file, want.files[file], text)
		}
		if file == mount.Resources {
			resources = texts[fmt.Sprintf("file%d", i)]
		}
	}
	return resources
}

func same(t *testing.T, what, want string, got []string) {
	t.Helper()
	list := strings.Fields(want)
	slices.Sort(list)
	slices.Sort(got)
	if diff := cmp.Diff(strings.Join(list, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("%s of the container (-want +got):\n%s", what, diff)
	}
}
