package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a b", "it's", "''", `\'`, "$HOME `id` $(id)", "a\nb", "*", "!x", "é\x80"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+Quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is read as %q, %v", text, out, err)
		}
	}
}
