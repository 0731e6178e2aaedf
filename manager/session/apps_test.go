package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/problem"
)

// The apps of a request have names that fit into a host name, valid ports, and a limited number.
func TestAppsOfARequest(t *testing.T) {
	many := make([]AppInput, 10_000)
	for i := range many {
		many[i] = AppInput{Name: fmt.Sprintf("app%d", i), Port: 8000}
	}
	for _, c := range []struct {
		name, field string
		apps        []AppInput
	}{
		{"one", "", []AppInput{{Name: "docs", Port: 8000}}},
		{"as many as allowed", "", many[:maxApps]},
		{"ten thousand", "apps", many},
		{"two of a name", "apps[1].name", []AppInput{{Name: "docs", Port: 8000}, {Name: "docs", Port: 8001}}},
		{"a port as a name", "apps[0].name", []AppInput{{Name: "8000", Port: 8000}}},
		{"two hyphens", "apps[0].name", []AppInput{{Name: "a--b", Port: 8000}}},
		{"a dot", "apps[0].name", []AppInput{{Name: "a.b", Port: 8000}}},
		{"no name", "apps[0].name", []AppInput{{Port: 8000}}},
		{"port 0", "apps[0].port", []AppInput{{Name: "docs"}}},
		{"a negative port", "apps[0].port", []AppInput{{Name: "docs", Port: -1}}},
		{"a port above the highest", "apps[0].port", []AppInput{{Name: "docs", Port: 65536}}},
		{"a large command", "apps", []AppInput{{Name: "docs", Port: 8000, Command: []string{strings.Repeat("a", maxCommand)}}}},
	} {
		err := checkApps(t.Context(), nil, CreateSessionInput{Apps: c.apps}, &sessionSpec{})
		p, _ := problem.From(err)
		if (err == nil) != (c.field == "") || err != nil && (p.Field != c.field || p.Code != problem.CodeInvalidArgument) {
			t.Errorf("%s: field %q, %v", c.name, p.Field, err)
		}
	}
}
