package accelerators

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/e2e/cluster"
)

// usual is what every container has.
var (
	usualNodes = []string{"full", "null", "pts/ptmx", "random", "tty", "urandom", "zero"}
	usualEnv   = []string{"HOME", "PATH", "PWD", "SHLVL", "OLDPWD", "TERM", "HOSTNAME", "_"}
)

// inside looks from inside a session at what it has of its device.
func inside(t *testing.T, u *cluster.User, session string, want view) {
	t.Helper()
	out, code := u.Exec(session, `cd /dev && find . \( -type c -o -type b \) | sed 's/^/node /;s/ \.\// /'; env | sed 's/^/env /'`)
	if code != 0 {
		t.Fatalf("look inside: %d\n%s", code, out)
	}
	var nodes, env []string
	for line := range strings.Lines(out) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(text, "=")
		switch {
		case kind == "node" && !slices.Contains(usualNodes, text):
			nodes = append(nodes, text)
		case kind == "env" && !slices.Contains(usualEnv, name) && !strings.HasPrefix(name, "BERTH_"):
			env = append(env, text)
		}
	}
	same(t, "device nodes", want.nodes, nodes)
	same(t, "variables", want.env, env)
	for _, file := range slices.Sorted(maps.Keys(want.files)) {
		out, code := u.Exec(session, fmt.Sprintf(`cat %[1]q && ! [ -w %[1]q ]`, file))
		if code != 0 || !strings.Contains(out, want.files[file]) {
			t.Errorf("%s: want a read-only file with %s (%d):\n%s", file, want.files[file], code, out)
		}
	}
	if want.writable != "" {
		if out, code := u.Exec(session, fmt.Sprintf(`echo x >%[1]q/of-a-test && rm %[1]q/of-a-test`, want.writable)); code != 0 {
			t.Errorf("%s cannot be written to: %s", want.writable, out)
		}
	}
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
