package clitest

import (
	"encoding/json"
	"slices"
	"strings"
)

// byName answers a look-up such as DomainByName from the test's answer to the list of that kind;
// nil means that the test has no such list.
func (f *Server) byName(operation string) func(json.RawMessage) string {
	kind, ok := strings.CutSuffix(operation, "ByName")
	list := kind + "s"
	if stem, ends := strings.CutSuffix(kind, "y"); ends {
		list = stem + "ies"
	}
	answer := f.Answer[list]
	if !ok || answer == nil {
		return nil
	}
	field := func(s string) string { return strings.ToLower(s[:1]) + s[1:] }
	return func(vars json.RawMessage) string {
		var asked struct{ Name string }
		var got map[string]struct {
			Edges []struct{ Node json.RawMessage }
		}
		if json.Unmarshal(vars, &asked) != nil || json.Unmarshal([]byte(answer(vars)), &got) != nil {
			f.t.Errorf("%s with %s: the answer to %s is not a list", operation, vars, list)
		}
		for _, e := range got[field(list)].Edges {
			var node map[string]any
			if json.Unmarshal(e.Node, &node) == nil && slices.ContainsFunc([]string{"name", "email", "username", "reference", "host"}, func(key string) bool { return node[key] == asked.Name }) {
				return `{"` + field(kind) + `":` + string(e.Node) + `}`
			}
		}
		return `{"` + field(kind) + `":null}`
	}
}
