package occupancy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A difference without a repair is logged once, and again at its end.
func TestOnlyChangesAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := &Service{Config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	lost := Drift{Kind: Kinds[0], Agent: "a", Device: "cuda:0", Detail: "is allocated, and its agent no longer has it"}
	lines := func(found ...Drift) string {
		log.Reset()
		s.logChanges(found)
		var out []string
		for line := range strings.Lines(log.String()) {
			_, msg, _ := strings.Cut(line, `msg="`)
			msg, _, _ = strings.Cut(msg, `"`)
			out = append(out, msg)
		}
		return strings.Join(out, "; ")
	}
	for i, step := range []struct {
		found []Drift
		want  string
	}{
		{[]Drift{lost}, "occupancy differs"},
		{[]Drift{lost}, ""},
		{nil, "occupancy no longer differs"},
		{nil, ""},
		{[]Drift{lost}, "occupancy differs"},
	} {
		if got := lines(step.found...); got != step.want {
			t.Errorf("step %d logs %q, want %q", i, got, step.want)
		}
	}
}
