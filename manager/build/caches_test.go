package build

import (
	"testing"
	"time"

	"github.com/berthhq/berth/manager/image"
)

// Old results go first, and then the oldest until the rest fits. Blobs that results share count once.
func TestExpiredResults(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	result := func(tag string, blobs map[string]int64) image.CachedResult {
		return image.CachedResult{Tag: tag, Blobs: blobs}
	}
	list := []image.CachedResult{
		result("new", map[string]int64{"base": 100, "n": 10}), result("old", map[string]int64{"base": 100, "o": 10}),
		result("unknown", map[string]int64{"u": 10}), result("middle", map[string]int64{"base": 100, "m": 10}),
	}
	used := map[string]time.Time{"new": now, "middle": now.Add(-24 * time.Hour), "old": now.Add(-60 * 24 * time.Hour)}
	for _, c := range []struct {
		limit int64
		want  string
	}{{1000, "unknown old "}, {120, "unknown old "}, {119, "unknown old middle "}, {50, "unknown old middle new "}} {
		got := ""
		for _, one := range expired(list, used, now.Add(-cacheLife), c.limit) {
			got += one.Tag + " "
		}
		if got != c.want {
			t.Errorf("with a limit of %d bytes: %q, want %q", c.limit, got, c.want)
		}
	}
}
