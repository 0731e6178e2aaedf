package naming

import (
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		text                string
		name, handle, aLine bool
	}{
		"plain":                     {text: "default", name: true, handle: true, aLine: true},
		"letters of many alphabets": {text: "Überlab 연구", name: true, aLine: true},
		"upper case":                {text: "Lab", name: true, aLine: true},
		"empty":                     {text: "", aLine: true},
		"path":                      {text: "../x", aLine: true},
		"slash":                     {text: "a/b", aLine: true},
		"leading dash":              {text: "-rf", aLine: true},
		"trailing space":            {text: "a ", aLine: true},
		"newline":                   {text: "a\nb"},
		"nul":                       {text: "a\x00b"},
		"right to left":             {text: "a\u202egpj"},
		"zero width":                {text: "a\u200bb"},
		"markup":                    {text: "<script>", aLine: true},
		"not utf-8":                 {text: "a\xffb"},
		"longest":                   {text: strings.Repeat("a", 64), name: true, handle: true, aLine: true},
		"one byte too far":          {text: strings.Repeat("a", 65), aLine: true},
		"too long a line":           {text: strings.Repeat("a", 101)},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, "Name", Name("f", c.text), c.name)
			check(t, "Handle", Handle("f", c.text), c.handle)
			check(t, "Line", Line("f", c.text, 100), c.aLine)
		})
	}
}

func check(t *testing.T, what string, err error, ok bool) {
	t.Helper()
	if ok != (err == nil) || !ok && !errdefs.IsInvalidArgument(err) {
		t.Errorf("%s: %v, want accepted %v", what, err, ok)
	}
}
