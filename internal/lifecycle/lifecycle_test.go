package lifecycle

import "testing"

func TestEveryStateReachesAnEnd(t *testing.T) {
	for _, s := range All {
		seen := map[Status]bool{}
		var reach func(Status) bool
		reach = func(s Status) bool {
			if s.Final() {
				return true
			}
			if seen[s] {
				return false
			}
			seen[s] = true
			for _, next := range moves[s] {
				if reach(next) {
					return true
				}
			}
			return false
		}
		if !reach(s) {
			t.Errorf("%s leads nowhere", s)
		}
		if s.Final() && len(moves[s]) > 0 {
			t.Errorf("%s is final and yet has moves", s)
		}
	}
}

func TestTransientStatesHaveADeadline(t *testing.T) {
	for _, s := range All {
		bounded := Deadline(s) > 0
		if want := !s.Final() && s != Pending && s != Running; bounded != want {
			t.Errorf("%s has a deadline: %v, want %v", s, bounded, want)
		}
	}
}
