package images

import (
	"regexp"
	"testing"
	"time"
)

// slowest has the times of the slowest pulls.
type slowest struct{ fetched, took time.Duration }

var pulled = regexp.MustCompile(`msg="image pulled".* fetched=(\S+) took=(\S+)`)

// pulls reads the times of the pulls from the agents' logs.
func pulls(t testing.TB, from int) (s slowest) {
	t.Helper()
	list := pulled.FindAllStringSubmatch(platform.Log()[from:], -1)
	if len(list) == 0 {
		t.Fatal("no pull was logged")
	}
	for _, m := range list {
		fetched, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		took, err := time.ParseDuration(m[2])
		if err != nil {
			t.Fatal(err)
		}
		s.fetched, s.took = max(s.fetched, fetched), max(s.took, took)
	}
	return s
}
