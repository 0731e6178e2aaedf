package inference

import (
	"testing"
	"time"
)

// A request that names a group gets its replicas, also those without a share, and no other ones.
func TestNamedGroup(t *testing.T) {
	t.Parallel()
	m := NewModel("m", nil)
	m.Update(Target{ID: "old", Weight: 100, Group: 1, Named: true}, Target{ID: "new", Group: 2, Named: true, Limit: 1}, Target{ID: "drained", Group: 3})
	pick := func(group int, tried ...*replica) string {
		if r := m.set.pickIn(group, nil, tried, time.Now()); r != nil {
			return r.ID
		}
		return ""
	}
	for range 20 {
		if got := pick(0); got != "old" {
			t.Fatalf("without a group: %q", got)
		}
	}
	if got := pick(1); got != "old" {
		t.Errorf("group 1: %q", got)
	}
	if first, full := pick(2), pick(2); first != "new" || full != "" {
		t.Errorf("group 2: %q, and when it is full %q", first, full)
	}
	if drained, missing := pick(3), pick(4); drained != "" || missing != "" {
		t.Errorf("a drained replica %q, no replica %q", drained, missing)
	}
}
