package usage

import (
	"testing"
)

func TestUsageOutput(t *testing.T) {
	f := newServer(t)
	f.Data("Usage", `{"usage":[{"slot":"cpu","slotSeconds":"5400"},{"slot":"mem","slotSeconds":"7730941132800"},{"slot":"mock.shares","slotSeconds":"1800.5"}]}`)
	f.Golden(map[string][]string{
		"usage":      {"usage"},
		"usage-json": {"usage", "-o", "json"},
	})
}
