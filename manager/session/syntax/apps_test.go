package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/problem"
)

// The apps of a request have names that fit into a host name, valid ports, and a limited number.
func TestAppsOfARequest(t *testing.T) {
	many := make([]appstate.App, 10_000)
	for i := range many {
		many[i] = appstate.App{Name: fmt.Sprintf("app%d", i), Port: 8000}
	}
	for _, c := range []struct {
		name, field string
		apps        []appstate.App
	}{
		{"one", "", []appstate.App{{Name: "docs", Port: 8000}}},
		{"as many as allowed", "", many[:maxApps]},
		{"ten thousand", "apps", many},
		{"two of a name", "apps[1].name", []appstate.App{{Name: "docs", Port: 8000}, {Name: "docs", Port: 8001}}},
		{"a port as a name", "apps[0].name", []appstate.App{{Name: "8000", Port: 8000}}},
		{"two hyphens", "apps[0].name", []appstate.App{{Name: "a--b", Port: 8000}}},
		{"a dot", "apps[0].name", []appstate.App{{Name: "a.b", Port: 8000}}},
		{"no name", "apps[0].name", []appstate.App{{Port: 8000}}},
		{"port 0", "apps[0].port", []appstate.App{{Name: "docs"}}},
		{"a negative port", "apps[0].port", []appstate.App{{Name: "docs", Port: -1}}},
		{"a port above the highest", "apps[0].port", []appstate.App{{Name: "docs", Port: 65536}}},
		{"a large command", "apps", []appstate.App{{Name: "docs", Port: 8000, Command: []string{strings.Repeat("a", MaxCommand)}}}},
	} {
		err := Apps(c.apps)
		p, _ := problem.From(err)
		if (err == nil) != (c.field == "") || err != nil && (p.Field != c.field || p.Code != problem.CodeInvalidArgument) {
			t.Errorf("%s: field %q, %v", c.name, p.Field, err)
		}
	}
}
