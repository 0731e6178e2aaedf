package yamltext

import (
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"list: [a, b]":   "",
		"list:\n  ! 000": "not valid YAML", // the library panics
		"list: {":        "[1:",
		"list: 1":        "[1:",
	} {
		var out struct {
			List []string `yaml:"list"`
		}
		err := Decode([]byte(text), &out)
		if want == "" && (err != nil || len(out.List) != 2) || want != "" && (!errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
