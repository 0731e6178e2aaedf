package berth

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test in docs/security.md exists in the named package.
func TestSecurityDoc(t *testing.T) {
	doc, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	source := map[string]string{} // the tests of a package
	named := 0
	for _, m := range regexp.MustCompile("`([a-z0-9/]+) (Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(doc), -1) {
		named++
		if source[m[1]] == "" {
			files, _ := filepath.Glob(filepath.Join(m[1], "*_test.go"))
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				source[m[1]] += string(text)
			}
		}
		if !strings.Contains(source[m[1]], "\nfunc "+m[2]+"(t *testing.T)") {
			t.Errorf("there is no test %s in %s", m[2], m[1])
		}
	}
	if rows := strings.Count(string(doc), "\n|"); named < rows-20 {
		t.Errorf("%d tests are named in %d rows", named, rows)
	}
}
