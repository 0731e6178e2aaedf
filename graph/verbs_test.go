package graph_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMutationsHaveOnePatternOfVerbs compares the verb of each mutation with the table in
// docs/api.md, and the verbs of one object with each other.
func TestMutationsHaveOnePatternOfVerbs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Verbs of mutations")
	table, _, _ = strings.Cut(table, "\n## ")
	var verbs []string
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-zA-Z]+)`").FindAllStringSubmatch(cells[1], -1) {
			verbs = append(verbs, m[1])
		}
	}
	if len(verbs) < 10 {
		t.Fatalf("docs/api.md has only %d verbs: %v", len(verbs), verbs)
	}
	used := map[string][]string{} // objects by verb
	for _, name := range mutationNames() {
		verb := ""
		for _, v := range verbs { // handOver, not hand
			rest, ok := strings.CutPrefix(name, v)
			if ok && len(v) > len(verb) && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
				verb = v
			}
		}
		if verb == "" {
			t.Errorf("the verb of %s is not in the table of docs/api.md", name)
			continue
		}
		used[verb] = append(used[verb], strings.TrimPrefix(name, verb))
	}
	for _, v := range verbs {
		if len(used[v]) == 0 {
			t.Errorf("docs/api.md has the verb %s, and no mutation", v)
		}
	}
	for undo, do := range map[string]string{"remove": "add", "revoke": "grant share create", "detach": "attach", "unshare": "share", "undrain": "drain", "decline": "accept"} {
		for _, object := range used[undo] {
			if !slices.ContainsFunc(strings.Fields(do), func(v string) bool {
				return slices.Contains(used[v], object) || slices.Contains(used[v], strings.TrimSuffix(object, "Share"))
			}) && object != "LoginSession" { // a login begins outside of the API
				t.Errorf("%s%s has no counterpart: %s", undo, object, do)
			}
		}
	}
	for _, object := range used["update"] { // an object that can be updated can also be deleted
		if !slices.Contains(used["delete"], object) && !slices.Contains(used["revoke"], object) && object != "Profile" && object != "PendingSession" {
			t.Errorf("update%s has no delete%s", object, object)
		}
	}
}
