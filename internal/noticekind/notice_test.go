package noticekind_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/noticekind"
)

// Every kind has a text in every language, and all parameters of the English one occur in the others.
func TestTexts(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	for _, name := range []string{"name", "reason", "by", "percent", "spent", "limit", "days", "plugin", "expires", "total"} {
		values[name] = "<" + name + ">"
	}
	for _, k := range noticekind.Kinds() {
		english := noticekind.Text(noticekind.English, k, values, 1)
		for _, l := range []noticekind.Language{noticekind.English, noticekind.Korean, noticekind.Japanese} {
			text := noticekind.Text(l, k, values, 1)
			if text == "" || l != noticekind.English && text == english {
				t.Errorf("%s in %s: %q", k, l, text)
			}
			for name, value := range values {
				if strings.Contains(english, value) != strings.Contains(text, value) {
					t.Errorf("%s in %s: %q and %q differ in %s", k, l, english, text, name)
				}
			}
			if many := noticekind.Text(l, k, values, 7); many != text && !strings.Contains(many, "7") {
				t.Errorf("%s in %s: %q lacks the count", k, l, many)
			}
		}
		if !slices.Contains(noticekind.Defaults(k), noticekind.Page) {
			t.Errorf("%s is not in the page by default", k)
		}
	}
}

// A parameter cannot begin a line, and cannot be a placeholder.
func TestParametersAreData(t *testing.T) {
	t.Parallel()
	got := noticekind.Text(noticekind.English, noticekind.SessionFailed, map[string]string{"name": "a{reason}\r\nBcc: x", "reason": "r"}, 1)
	if got != "Session a{reason}  Bcc: x has failed: r." {
		t.Errorf("%q", got)
	}
}

func TestChoice(t *testing.T) {
	t.Parallel()
	c := noticekind.Choice{noticekind.Quota: {}}
	if len(c.Of(noticekind.Quota)) != 0 || !slices.Equal(c.Of(noticekind.SessionEnded), noticekind.Defaults(noticekind.SessionEnded)) {
		t.Errorf("%v %v", c.Of(noticekind.Quota), c.Of(noticekind.SessionEnded))
	}
}
