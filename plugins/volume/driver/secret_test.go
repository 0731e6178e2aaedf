package driver_test

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/volume/driver"
)

func TestHidden(t *testing.T) {
	var h driver.Hidden
	h.Add("word", `pass"word &c`, "", "abc")
	for text, want := range map[string]string{
		`a pass"word &c`:                   "a ***",
		`in JSON "pass\"word &c" it is`:    `in JSON "***" it is`,
		`in JSON "pass\"word \u0026c" too`: `in JSON "***" too`,
		"in ?p=pass%22word+%26c&x":         "in ?p=***&x",
		"a word of it, abc":                "a *** of it, abc", // too short
	} {
		if got := h.Redact(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
	for i := range 200 { // the first ones are kept
		h.Add("token-" + strings.Repeat("z", i))
	}
	if got := h.Redact("word token-" + strings.Repeat("z", 199)); got != "*** ***" {
		t.Errorf("at last: %s", got)
	}
}
