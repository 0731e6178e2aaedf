package runner

import (
	"slices"
	"testing"
	"time"
)

// A server that keeps ending at once is restarted after longer and longer pauses.
func TestPausesOfTheServer(t *testing.T) {
	t.Parallel()
	p := peers{began: time.Now()}
	var got []time.Duration
	for range 8 {
		p.later()
		got = append(got, p.pause/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; !slices.Equal(got, want) {
		t.Errorf("pauses in seconds are %v, want %v", got, want)
	}
	p.began = time.Now().Add(-peersCalm)
	if p.later(); p.pause != peersAgain {
		t.Errorf("after a minute of service the pause is %s", p.pause)
	}
}
