package folderpath_test

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/folderpath"
)

func TestFaults(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", folderpath.MaxDepth), "/")
	for _, c := range []struct {
		name, path  string
		there, made bool
	}{
		{"a name", "a", true, true},
		{"names", "a/b c/ü..x", true, true},
		{"nothing", "", false, false},
		{"absolute", "/a", false, false},
		{"up", "a/../b", false, false},
		{"a dot", "a/./b", false, false},
		{"two slashes", "a//b", false, false},
		{"a slash at the end", "a/", false, false},
		{"NUL", "a\x00", false, false},
		{"a line feed", "a\nb", true, false},
		{"C1", "a\u0085b", true, false},
		{"no UTF-8", "a\xff", true, false},
		{"an incomplete character", "a\ufffd", true, false},
		{"the longest name", strings.Repeat("n", 255), true, true},
		{"a longer name", strings.Repeat("n", 256), false, false},
		{"the deepest", deep, true, true},
		{"deeper", deep + "/d", true, false},
		{"a longer path", strings.Repeat("123456789/", 410) + "x", false, false},
	} {
		if fault := folderpath.Fault(c.path); (fault == "") != c.there {
			t.Errorf("%s: that is there: %q", c.name, fault)
		}
		if fault := folderpath.NewFault(c.path); (fault == "") != c.made {
			t.Errorf("%s: invented reason: %q", c.name, fault)
		}
	}
}
