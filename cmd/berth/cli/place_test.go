package cli

import (
	"testing"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"data": {"data", ""}, "data:": {"data", ""}, "data:a/b": {"data", "a/b"}, "data:/a/": {"data", "a"},
		"data:../../x": {"data", "x"}, "data:a:b": {"data", "a:b"},
	} {
		if got := ParsePlace(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
